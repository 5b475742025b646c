"""`manage.py key create|list|revoke`: keys for programs (R-API-10)."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from tenancy.actions import create_key, revoke_key
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.errors import NotFound
from tenancy.core.roles import Role, Scope, scopes_of
from tenancy.models import ApiKey, Person, Tenant
from tenancy.queries import tenant_by_slug

# Whoever made such keys for nobody would be as many second persons as there are keys.
ANSWERED_FOR: Final = frozenset({Scope.DECIDE, Scope.ADMIN})


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
        create.add_argument("--expires", type=_days, metavar="DAYS", help="a whole number from 1")
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
        owner, role = None, Role(options["role"])
        if not options["owner"] and set(scopes_of((role,))) & ANSWERED_FOR:
            raise CommandError(
                f"a key with the role {role.value} needs somebody who answers for it: --for EMAIL"
            )
        if options["owner"]:
            owner = Person.objects.filter(email__iexact=options["owner"]).first()
            if owner is None:
                raise CommandError(f"there is no person {options['owner']!r}")
        days = options["expires"]
        new = create_key(
            found.id, role, owner=owner, label=options["label"],
            expires_in=timedelta(days=days) if days is not None else None,
        )  # fmt: skip
        self.stdout.write(new.clear)

    def _list(self, found: Tenant, options: dict[str, Any]) -> None:
        with tenant(found.id):
            now = database_now()
            for key in ApiKey.objects.order_by("created_at", "id"):
                self.stdout.write(
                    f"{key.id}  {key.role:9} {_state(key, now):8} last used {key.last_used_at or 'never'}"
                    f"  {key.label}"
                )

    def _revoke(self, found: Tenant, options: dict[str, Any]) -> None:
        try:
            at = revoke_key(found.id, options["key"])
        except NotFound:
            raise CommandError(f"{found.slug} has no key {options['key']}") from None
        self.stdout.write(f"revoked at {at}")


def _days(text: str) -> int:
    """A life of no days would be a key for ever, or none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) >= 1):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _state(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "active"
