"""`manage.py key create|list|rotate|revoke`: keys for programs (R-API-10, R-SEC-11)."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from tenancy.actions import KEY_LIFE, NewKey, create_key, revoke_key
from tenancy.actions.keys import ANSWERED_FOR, LONGEST_OVERLAP, rotate_key
from tenancy.core.errors import InvalidInput, KeyGone, NotFound, RoleLacking, TenancyError
from tenancy.core.reach import KeyLimits, RunReach
from tenancy.core.roles import Role, scopes_of
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey, Person, Tenant
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Makes, lists, rotates and revokes keys. A new key stands alone on standard output."""

    help = "Make, list, rotate or revoke a tenant's API keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Four verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create")
        create.add_argument("--role", required=True, choices=[role.value for role in Role])
        create.add_argument("--for", dest="owner", metavar="EMAIL", help="the person who answers for the key")
        create.add_argument("--label", default="")
        create.add_argument(
            "--runs",
            choices=[reach.value for reach in RunReach],
            help="whose runs it reaches: its own (a client's, where nothing is said) or all of the tenant's",
        )
        create.add_argument(
            "--workflow", action="append", default=[], metavar="PATTERN",
            help="only runs of workflows that a pattern fits, such as support-*; may be repeated",
        )  # fmt: skip
        create.add_argument(
            "--address", action="append", default=[], metavar="RANGE",
            help="only from these addresses, such as 10.1.0.0/16; may be repeated",
        )  # fmt: skip
        rotate = verbs.add_parser("rotate")
        rotate.add_argument("key", type=UUID)
        rotate.add_argument(
            "--overlap", type=_hours, default=0, metavar="HOURS", help="how long the key before is good still"
        )
        for made in (create, rotate):
            made.add_argument(
                "--expires",
                type=parse_days,
                metavar="DAYS",
                help=f"a whole number from 1; else {KEY_LIFE.days}",
            )
        revoke = verbs.add_parser("revoke")
        revoke.add_argument("key", type=UUID)
        for verb in (create, rotate, revoke, verbs.add_parser("list")):
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
        runs = RunReach(options["runs"]) if options["runs"] else None
        limits = KeyLimits(runs, tuple(options["workflow"]), tuple(options["address"]))
        try:
            new = create_key(
                found.id, role, owner=owner, label=options["label"], expires_in=_life(options), limits=limits
            )
        except (InvalidInput, RoleLacking) as error:
            raise CommandError(_sentence(error)) from None
        self._print_key(new, options)

    def _rotate(self, found: Tenant, options: dict[str, Any]) -> None:
        overlap = timedelta(hours=options["overlap"])
        try:
            new = rotate_key(found.id, options["key"], overlap=overlap, expires_in=_life(options))
        except NotFound:
            raise CommandError(f"{found.slug} has no key {options['key']}") from None
        except (KeyGone, RoleLacking) as error:
            raise CommandError(_sentence(error)) from None
        self._print_key(new, options)

    def _print_key(self, new: NewKey, options: dict[str, Any]) -> None:
        """The key alone on standard output; the end that nobody chose on the other."""
        if options["expires"] is None:
            self.stderr.write(
                f"The key ends on {new.key.expires_at:%Y-%m-%d}, after {KEY_LIFE.days} days; "
                "--expires DAYS says another end."
            )
        self.stdout.write(new.clear)

    def _list(self, found: Tenant, options: dict[str, Any]) -> None:
        with tenant_transaction(found.id):
            now = database_now()
            for key in ApiKey.objects.order_by("created_at", "id"):
                self.stdout.write(
                    f"{key.id}  {key.role:9} {_state(key, now):8} last used {key.last_used_at or 'never'}"
                    f"  ends {key.expires_at or 'never'}  {_limits(key)}  {key.label}"
                )

    def _revoke(self, found: Tenant, options: dict[str, Any]) -> None:
        try:
            at = revoke_key(found.id, options["key"])
        except NotFound:
            raise CommandError(f"{found.slug} has no key {options['key']}") from None
        self.stdout.write(f"revoked at {at}")


def parse_days(text: str) -> int:
    """A life of no days would be a key for ever, or none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) >= 1):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _hours(text: str) -> int:
    """Longer than the longest overlap would not be kept."""
    most = int(LONGEST_OVERLAP / timedelta(hours=1))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) <= most):
        raise ArgumentTypeError(f"{text!r} is not a whole number of hours from 0 to {most}")
    return int(text)


def _life(options: dict[str, Any]) -> timedelta:
    return KEY_LIFE if options["expires"] is None else timedelta(days=options["expires"])


def _sentence(error: TenancyError) -> str:
    faults: list[dict[str, str]] = error.data.get("errors", [])
    return " ".join(fault["detail"] for fault in faults) or str(error)


def _limits(key: ApiKey) -> str:
    parts = [f"{key.runs} runs", *(f"workflow {one}" for one in key.workflows)]
    return ", ".join(parts + [f"from {one}" for one in key.addresses])


def _state(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "active"
