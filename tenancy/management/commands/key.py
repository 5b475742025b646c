"""`manage.py key create|list|revoke`: keys for programs (R-API-10)."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from tenancy.actions import create_key, revoke_key
from tenancy.context import tenant
from tenancy.core.roles import Role
from tenancy.models import ApiKey, Person, Tenant
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Makes, lists and revokes keys. `create` prints the key alone on standard output."""

    help = "Make, list or revoke a tenant's API keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Three verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create")
        create.add_argument("--role", required=True, choices=[role.value for role in Role])
        create.add_argument("--for", dest="owner", metavar="EMAIL", help="the person who answers for the key")
        create.add_argument("--label", default="")
        create.add_argument("--expires", type=int, metavar="DAYS")
        revoke = verbs.add_parser("revoke")
        revoke.add_argument("key", type=UUID)
        for verb in (create, revoke, verbs.add_parser("list")):
            verb.add_argument("--tenant", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Find the tenant and do it."""
        found = tenant_by_slug(options["tenant"])
        if found is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        getattr(self, f"_{options['verb']}")(found, options)

    def _create(self, found: Tenant, options: dict[str, Any]) -> None:
        owner = None
        if options["owner"]:
            owner = Person.objects.filter(email__iexact=options["owner"]).first()
            if owner is None:
                raise CommandError(f"there is no person {options['owner']!r}")
        days = options["expires"]
        new = create_key(
            found.id, Role(options["role"]), owner=owner, label=options["label"],
            expires_in=timedelta(days=days) if days else None,
        )  # fmt: skip
        self.stdout.write(new.clear)

    def _list(self, found: Tenant, options: dict[str, Any]) -> None:
        with tenant(found.id):
            for key in ApiKey.objects.order_by("created_at"):
                state = "revoked" if key.revoked_at else "active"
                self.stdout.write(
                    f"{key.id}  {key.role:9} {state:8} last used {key.last_used_at or 'never'}  {key.label}"
                )

    def _revoke(self, found: Tenant, options: dict[str, Any]) -> None:
        self.stdout.write(f"revoked at {revoke_key(found.id, options['key'])}")
