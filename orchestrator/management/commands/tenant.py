"""`manage.py tenant create|list|update|suspend|resume`: the tenants of a deployment (R-SEC-10)."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from budgets.core.ceilings import DEFAULT_TIER, TIERS
from orchestrator.tenants.actions.tenants import NewTenant, open_tenant, suspend_with_runs, update_tenant
from tenancy.actions.tenants import CHANGEABLE, resume_tenant
from tenancy.core.errors import InvalidInput
from tenancy.models import Tenant
from tenancy.people.first_password import first_password_path
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Opens, lists, changes, suspends and resumes tenants."""

    help = "Open a tenant of your own, and list, change, suspend and resume tenants."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Five verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="`tenant create acme --name Acme --admin ada@acme.example`")
        create.add_argument("slug", help="small letters, digits and hyphens")
        create.add_argument("--admin", required=True, metavar="EMAIL", help="its first administrator")
        create.add_argument("--admin-name", default="", help="the name of that person")
        verbs.add_parser("list")
        update = verbs.add_parser("update")
        for verb, default in ((create, "UTC"), (update, None)):
            verb.add_argument("--name", required=verb is create)
            verb.add_argument("--time-zone", default=default, help="such as Europe/Zurich")
            tier = DEFAULT_TIER if verb is create else None
            verb.add_argument("--tier", default=tier, help=f"what it may spend: {', '.join(TIERS)}")
            highest = 6 if verb is create else None
            verb.add_argument(
                "--autonomy", type=int, dest="highest_autonomy_tier", default=highest, metavar="TIER",
                help="the highest autonomy tier of its workflows, 1 to 7",
            )  # fmt: skip
        for name in ("suspend", "resume"):
            verbs.add_parser(name)
        for name in ("update", "suspend", "resume"):
            verbs.choices[name].add_argument("slug")
            verbs.choices[name].add_argument("--reason", required=name == "suspend", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Raises CommandError that names each value that is refused."""
        try:
            getattr(self, f"_{options['verb']}")(options)
        except InvalidInput as error:
            faults = (f"{one['pointer'][1:]}: {one['detail']}" for one in error.data["errors"])
            raise CommandError("; ".join(faults)) from None

    def _create(self, options: dict[str, Any]) -> None:
        asked = NewTenant(
            slug=options["slug"], administrator=options["admin"],
            administrator_name=options["admin_name"] or options["admin"].partition("@")[0],
            **{name: options[name] for name in CHANGEABLE},
        )  # fmt: skip
        opened = open_tenant(asked)
        self.stdout.write(f"The tenant {opened.tenant.slug} is open.")
        person = opened.administrator.invited.person
        if opened.administrator.invited.new:
            where = settings.INTERLOCK_ADDRESS + first_password_path(person)
            self.stdout.write(f"{person.email} sets a password here, once and within three days:\n{where}")
        else:
            self.stdout.write(f"{person.email} signs in as before: {settings.INTERLOCK_ADDRESS}")

    def _list(self, _options: dict[str, Any]) -> None:
        for row in Tenant.objects.order_by("slug"):
            state = "active" if row.suspended_at is None else f"suspended: {row.suspended_reason}"
            highest = f"autonomy {row.highest_autonomy_tier}"
            self.stdout.write(f"{row.slug}  {row.name}  {row.time_zone}  {row.tier}  {highest}  {state}")

    def _update(self, options: dict[str, Any]) -> None:
        changes = {name: options[name] for name in CHANGEABLE if options[name] is not None}
        if not changes:
            raise CommandError("say what to change: --name, --time-zone, --tier or --autonomy")
        update_tenant(_get_tenant(options).id, changes, by=None, reason=options["reason"])
        self.stdout.write("changed")

    def _suspend(self, options: dict[str, Any]) -> None:
        paused = suspend_with_runs(_get_tenant(options).id, by=None, reason=options["reason"])
        if paused is None:
            raise CommandError(f"{options['slug']} is suspended already")
        self.stdout.write(f"suspended; {paused} runs pause")

    def _resume(self, options: dict[str, Any]) -> None:
        if not resume_tenant(_get_tenant(options).id, by=None, reason=options["reason"]):
            raise CommandError(f"{options['slug']} is not suspended")
        self.stdout.write("Its people and keys may act again. An operator resumes its paused runs.")


def _get_tenant(options: dict[str, Any]) -> Tenant:
    found = tenant_by_slug(options["slug"])
    if found is None:
        raise CommandError(f"there is no tenant {options['slug']!r}")
    return found
