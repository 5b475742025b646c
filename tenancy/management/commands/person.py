"""`manage.py person invite|link|confirm|forget-factor`: the people of a team's first day, and a lost second
factor (R-SEC-1, R-APPR-5, R-SEC-11)."""

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tenancy.actions.confirmation import NothingToConfirm, NotSignedIn, confirm_by_command
from tenancy.actions.people import (
    Limits,
    invite_member,
    may_get_link,
    note_printed_link,
)
from tenancy.actions.sign_in_rules import forget_factors
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import SCOPES, Role, Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Person, Tenant
from tenancy.people.first_password import first_password_path
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Invites people, makes their first-password links (printed alone on standard output), and takes a lost
    second factor from them.

    It relates nobody: whoever has this shell has the database.
    """

    help = "Invite a person, make their first-password link again, or take a lost second factor from them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Three verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        one = verbs.add_parser("invite")
        one.add_argument("--name", required=True)
        one.add_argument("--role", required=True, choices=[role.value for role in Role])
        one.add_argument(
            "--queue",
            action="append",
            default=[],
            help="a queue they decide in, '*' for every one; may be repeated",
        )
        for verb in (one, verbs.add_parser("link")):
            verb.add_argument(
                "--origin", default=settings.INTERLOCK_ADDRESS, help="such as https://interlock.example"
            )
        confirm = verbs.add_parser("confirm", help="let a person act who was invited but not confirmed")
        confirm.add_argument("--reason", required=True, help="how you made sure that the account is theirs")
        for verb in (*verbs.choices.values(), verbs.add_parser("forget-factor")):
            verb.add_argument("email", metavar="EMAIL")
            verb.add_argument("--tenant", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Find the tenant and do it."""
        found = tenant_by_slug(options["tenant"])
        if found is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        if options["verb"] == "forget-factor":
            self._forget(found, options)
            return
        if options["verb"] == "confirm":
            self._confirm(found, options)
            return
        origin = urlsplit(options["origin"])
        if origin.scheme not in ("http", "https") or not origin.hostname:
            raise CommandError("say where the console is: --origin or INTERLOCK_URL")
        getattr(self, f"_{options['verb']}")(found, options)

    def _invite(self, found: Tenant, options: dict[str, Any]) -> None:
        if Scope.DECIDE in SCOPES[Role(options["role"])] and not options["queue"]:
            raise CommandError("say in which queues they decide: --queue NAME, or --queue '*' for every one")
        limits = Limits(queues=tuple(options["queue"]))
        try:
            invited = invite_member(
                found.id, options["email"], options["name"], Role(options["role"]), limits, by=None
            )
        except InvalidInput as error:
            raise CommandError(error.data["errors"][0]["detail"]) from None
        if may_get_link(found.id, invited.person):
            self._print_link(found, invited.person, options)
        else:
            self.stderr.write(f"{invited.person.email} signs in as before")
        if invited.member.awaits_confirmation:
            self.stderr.write(
                "somebody saw their first-password link in another tenant: they do nothing here before an "
                "administrator confirms them, or `manage.py person confirm` does"
            )

    def _confirm(self, found: Tenant, options: dict[str, Any]) -> None:
        person = self._person(found, options["email"])
        try:
            confirm_by_command(found.id, person, reason=options["reason"])
        except (InvalidInput, NotSignedIn, NothingToConfirm) as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"{person.email} can act in {found.slug} now")

    def _forget(self, found: Tenant, options: dict[str, Any]) -> None:
        person = self._person(found, options["email"])
        gone = forget_factors(found.id, person)
        self.stderr.write(f"{person.email} has no second factor any more; {gone} of theirs taken away")

    def _person(self, found: Tenant, email: str) -> Person:
        """The tenant's person of this address. Raises CommandError."""
        with tenant_transaction(found.id):
            members = Person.objects.filter(memberships__tenant_id=found.id)
            person = members.filter(email__iexact=email).distinct().first()
        if person is None:
            raise CommandError(f"{found.slug} has no person {email!r}")
        return person

    def _link(self, found: Tenant, options: dict[str, Any]) -> None:
        person = self._person(found, options["email"])
        if not may_get_link(found.id, person):
            raise CommandError(f"{person.email} has signed in, or belongs to another tenant too")
        self._print_link(found, person, options)

    def _print_link(self, found: Tenant, person: Person, options: dict[str, Any]) -> None:
        note_printed_link(found.id, person)
        self.stdout.write(f"{options['origin'].rstrip('/')}{first_password_path(person)}")
