"""Platform administrators, made as the shell makes them: by the owner of the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO

from django.core.management import call_command
from django.db import connections

from config.databases import build_database_settings
from tenancy.actions import add_person
from tenancy.actions.platform_admins import add_platform_admin, create_platform_key
from tenancy.db.ids import fresh_id
from tenancy.models import Person
from tests.doors.api.program import Program
from tests.servers import TestServers

OWNER = "owner"


@contextmanager
def owner_connection(servers: TestServers) -> Iterator[None]:
    """The connection of the database's owner, as settings have it where DATABASE_OWNER_URL is said."""
    url = servers.postgres.url("interlock_owner", servers.database)
    more = {"TIME_ZONE": None, "AUTOCOMMIT": True, "TEST": {"MIRROR": None}}
    connections.settings[OWNER] = build_database_settings(url, pool_size=None) | more
    try:
        yield
    finally:
        connections[OWNER].close()
        del connections[OWNER]
        del connections.settings[OWNER]


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A platform administrator who is in no tenant, and their program."""

    servers: TestServers
    person: Person
    program: Program


def make_platform_admin(servers: TestServers, person: Person | None = None) -> Platform:
    """A platform administrator with a key; a new person where none is given."""
    found = person or add_person(f"{fresh_id().hex}@people.example", "the platform administrator")
    with owner_connection(servers):
        add_platform_admin(found, reason="", using=OWNER)
        key = create_platform_key(found, label="theirs", using=OWNER)
    return Platform(servers=servers, person=found, program=Program(clear=key.clear))


def typed(servers: TestServers, *told: str) -> tuple[str, str]:
    """What `manage.py platform` prints on its two outputs."""
    out, err = StringIO(), StringIO()
    with owner_connection(servers):
        call_command("platform", *told, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()
