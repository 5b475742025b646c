"""`manage.py sign_in_rules show|set`: a tenant's rules of signing in, at the machine (R-SEC-11)."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenancy.actions.sign_in_rules import rules_document, set_sign_in_rules
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area, SignInRules
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.people.sign_in_rules import RulesNow, sign_in_rules_now
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Shows and sets the rules. Setting asks no second administrator: whoever has this shell has the
    database, and a tenant that shut itself out is let in again from here."""

    help = "Show or set which roles of a tenant need a second factor, and where it is asked for again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Two verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        setting = verbs.add_parser("set")
        setting.add_argument(
            "--second-factor", nargs="*", choices=[role.value for role in Role], metavar="ROLE",
            help="the roles that need one; without a name none does",
        )  # fmt: skip
        setting.add_argument(
            "--ask-again", nargs="*", choices=[area.value for area in Area], metavar="AREA",
            help="money, keys, invitations: before whose changes it is asked for again; without a name none",
        )  # fmt: skip
        setting.add_argument("--minutes", type=int, help="how long a proof counts")
        setting.add_argument("--reason", required=True)
        for verb in (setting, verbs.add_parser("show")):
            verb.add_argument("--tenant", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Find the tenant and do it; what is not named stays as it is."""
        found = tenant_by_slug(options["tenant"])
        if found is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        with tenant_transaction(found.id):
            now = sign_in_rules_now()
        if options["verb"] == "set":
            now = self._set(found, now, options)
        said = rules_document(now.rules)
        self.stdout.write(f"second factor: {', '.join(said['second_factor']) or 'no role'}")
        self.stdout.write(f"asked for again: {', '.join(said['ask_again']) or 'nothing'}")
        self.stdout.write(f"minutes: {said['minutes']}")
        self.stdout.write(f"version: {now.version}")

    def _set(self, found: Tenant, before: RulesNow, options: dict[str, Any]) -> RulesNow:
        roles, areas, minutes = options["second_factor"], options["ask_again"], options["minutes"]
        wanted = SignInRules(
            second_factor=before.rules.second_factor if roles is None else frozenset(map(Role, roles)),
            ask_again=before.rules.ask_again if areas is None else frozenset(map(Area, areas)),
            minutes=before.rules.minutes if minutes is None else minutes,
        )
        try:
            return set_sign_in_rules(
                found.id, wanted, expected=before.version, by=None, reason=options["reason"]
            )
        except InvalidInput as error:
            raise CommandError(error.data["errors"][0]["detail"]) from None
