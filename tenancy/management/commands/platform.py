"""`manage.py platform add|remove|list|key|keys|revoke`: who administers the platform (R-SEC-10)."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from tenancy.actions import KEY_LIFE, add_person
from tenancy.actions.platform_admins import (
    add_platform_admin,
    create_platform_key,
    remove_platform_admin,
    revoke_platform_key,
)
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.management.commands.key import parse_days
from tenancy.models import Person
from tenancy.people.first_password import first_password_path
from tenancy.people.platform_admins import person_by_email, platform_admins
from tenancy.platform_models import PlatformKey

OWNER = "owner"


class Command(BaseCommand):
    """Names platform administrators and makes their keys, as the owner of the database. A link and a new key
    stand alone on standard output."""

    help = "Name the people who open, change and suspend tenants, and make keys for their programs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Six verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        add = verbs.add_parser("add")
        add.add_argument("--name", default="", help="the name of a person who is not known yet")
        add.add_argument(
            "--origin", default=settings.INTERLOCK_ADDRESS, help="such as https://interlock.example"
        )
        remove = verbs.add_parser("remove")
        key = verbs.add_parser("key")
        key.add_argument("--label", default="")
        key.add_argument(
            "--expires", type=parse_days, default=KEY_LIFE.days, metavar="DAYS",
            help=f"a whole number from 1; else {KEY_LIFE.days}",
        )  # fmt: skip
        for verb in (add, remove, key):
            verb.add_argument("email", metavar="EMAIL")
        revoke = verbs.add_parser("revoke")
        revoke.add_argument("key", type=UUID)
        for verb in (add, remove, revoke):
            verb.add_argument("--reason", required=verb is remove, default="")
        verbs.add_parser("list")
        verbs.add_parser("keys")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Raises CommandError where the owner's address is not known."""
        verb = options["verb"]
        if verb not in ("list", "keys") and OWNER not in connections.settings:
            raise CommandError(
                "only the owner of the database names platform administrators: set DATABASE_OWNER_URL"
            )
        getattr(self, f"_{verb}")(options)

    def _add(self, options: dict[str, Any]) -> None:
        origin = urlsplit(options["origin"])
        if origin.scheme not in ("http", "https") or not origin.hostname:
            raise CommandError("say where the console is: --origin or INTERLOCK_URL")
        email = options["email"]
        try:
            person = person_by_email(email) or add_person(email, options["name"] or email.partition("@")[0])
        except InvalidInput as error:
            raise CommandError(error.data["errors"][0]["detail"]) from None
        made = add_platform_admin(person, reason=options["reason"], using=OWNER)
        self.stderr.write(f"{person.email} is a platform administrator{'' if made else ' already'}.")
        person.refresh_from_db()
        if person.has_usable_password() or person.last_login is not None:
            self.stderr.write("They sign in as before.")
            return
        self.stderr.write("They set a password here, once and within three days:")
        self.stdout.write(f"{options['origin'].rstrip('/')}{first_password_path(person)}")

    def _remove(self, options: dict[str, Any]) -> None:
        try:
            remove_platform_admin(_get_person(options["email"]), reason=options["reason"], using=OWNER)
        except NotFound:
            raise CommandError(f"{options['email']} is no platform administrator") from None
        self.stdout.write("removed; their keys of the platform are revoked")

    def _key(self, options: dict[str, Any]) -> None:
        life = timedelta(days=options["expires"])
        try:
            new = create_platform_key(
                _get_person(options["email"]), label=options["label"], expires_in=life, using=OWNER
            )
        except NotFound:
            raise CommandError(f"{options['email']} is no platform administrator") from None
        self.stderr.write(f"The key ends on {new.key.expires_at:%Y-%m-%d}.")
        self.stdout.write(new.clear)

    def _revoke(self, options: dict[str, Any]) -> None:
        try:
            at = revoke_platform_key(options["key"], reason=options["reason"], using=OWNER)
        except NotFound:
            raise CommandError(f"there is no key {options['key']} of the platform") from None
        self.stdout.write(f"revoked at {at}")

    def _list(self, _options: dict[str, Any]) -> None:
        for one in platform_admins():
            self.stdout.write(f"{one.person.email}  {one.person.name}  since {one.since:%Y-%m-%d}")

    def _keys(self, _options: dict[str, Any]) -> None:
        for key in PlatformKey.objects.select_related("person").order_by("created_at", "id"):
            state = "revoked" if key.revoked_at is not None else f"ends {key.expires_at:%Y-%m-%d}"
            used = key.last_used_at or "never"
            self.stdout.write(f"{key.id}  {key.person.email}  {state}  last used {used}  {key.label}")


def _get_person(email: str) -> Person:
    found = person_by_email(email)
    if found is None:
        raise CommandError(f"there is no person {email!r}")
    return found
