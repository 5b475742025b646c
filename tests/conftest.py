"""What every test may ask for: a database as the application's role, a broker, a furnished house."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.db import connections
from hypothesis import settings as generated
from pytest_django import DjangoDbBlocker

from config.databases import build_database_settings
from config.devstack.embedded import EmbeddedValkey
from orchestrator.core.policy.private_hosts import read_bound
from tests.doubles.anthropic_server import anthropic_server as anthropic_server
from tests.doubles.company import company as company
from tests.doubles.company import company_process as company_process
from tests.doubles.openai_server import openai_server as openai_server
from tests.servers import FOLDER, TestServers

if TYPE_CHECKING:
    from tenancy.models import Tenant
    from tests.factories.tenancy import Cast
    from tests.factories.world import World

WHOLLY_SLOW = re.compile(r"^pytestmark = .*pytest\.mark\.slow\b", re.MULTILINE)
# How long an example takes depends on who else is at the machine; pytest-timeout bounds a whole test.
generated.register_profile("any machine", deadline=None)
generated.load_profile("any machine")
# Until the fixture `servers` says otherwise there is no database at all: not even that of a running house.
connections.settings["default"].update(HOST="/nonexistent", NAME="none", OPTIONS={})
connections.settings.pop("owner", None)
os.environ["INTERLOCK_DATA_DIR"] = str(FOLDER)
# Doubles of other servers listen on loopback, as they may in the embedded mode; nobody listens in 10.0.0.0/8.
settings.INTERLOCK_PRIVATE_PLACES = read_bound("loopback, 10.0.0.0/8")
for _name in ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL"):
    os.environ.pop(_name, None)


def _worker() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


@pytest.fixture(scope="session")
def servers(django_db_blocker: DjangoDbBlocker) -> Iterator[TestServers]:
    """PostgreSQL with a freshly copied, migrated database that only this process uses."""
    found = TestServers(os.environ.get("INTERLOCK_TEST_DATABASE", "suite"), _worker())
    found.acquire()
    try:
        found.prepare()
        url = found.environment()["DATABASE_URL"]
        entry = build_database_settings(url, pool_size=32) | {
            "TIME_ZONE": None,
            "AUTOCOMMIT": True,
            "TEST": {"MIRROR": None},
        }
        connections.settings["default"].update(entry)
        with django_db_blocker.unblock():
            yield found
            connections.close_all()
            connections["default"].close_pool()  # type: ignore[attr-defined]
    finally:
        found.release()


@pytest.fixture(scope="session", autouse=True)
def effects() -> Iterator[None]:
    """Closes what the workers of this process's tests held open."""
    yield
    world = sys.modules.get("tests.factories.world")
    if world is not None:
        world.LOOP.stop()


@pytest.fixture(scope="session", autouse=True)
def passwords_are_hashed_quickly() -> Iterator[None]:
    """Argon2 all the same, and as strong as a test's password has to be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Argon2PasswordHasher, "time_cost", 1)
        patch.setattr(Argon2PasswordHasher, "memory_cost", 1024)
        yield


@pytest.fixture(scope="session", autouse=True)
def static_files_are_listed_once() -> Iterator[None]:
    """Every test client loads the middleware anew, which looks at each static file; they do not change."""
    from servestatic.middleware import ServeStaticMiddleware  # type: ignore[import-untyped] # noqa: PLC0415 - needs settings

    listed: dict[tuple[Any, ...], tuple[dict[str, Any], list[Any]]] = {}
    look = ServeStaticMiddleware.add_files_from_finders

    def remember(self: ServeStaticMiddleware) -> None:
        asked = (self.static_prefix, self.autorefresh, self.max_age, tuple(settings.STATICFILES_DIRS))
        if asked not in listed:
            look(self)
            listed[asked] = (dict(self.files), list(self.directories))
        files, folders = listed[asked]
        self.files, self.directories = dict(files), list(folders)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServeStaticMiddleware, "add_files_from_finders", remember)
        yield


@pytest.fixture(scope="session")
def valkey() -> Iterator[EmbeddedValkey]:
    """A Valkey of this process's own: FLUSHALL hurts nobody else. The settings point to it."""
    server = EmbeddedValkey(FOLDER, name=f"valkey-{os.getpid()}")
    server.start()
    settings.REDIS_URL = server.url
    yield server
    server.stop()
    server.pid_file.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def django_db_setup(servers: TestServers) -> None:
    """Replaces pytest-django's own: the database is a copy of the template, and nothing creates or flushes
    it.
    """


@pytest.fixture
def superuser(servers: TestServers) -> Iterator[psycopg.Connection]:
    """A superuser on the same database, in autocommit: for tests that tamper."""
    with servers.superuser() as connection:
        yield connection


@dataclass(frozen=True)
class House:
    """A fresh tenant with people in every role; what a test commits in it, nobody else sees."""

    tenant: Tenant
    people: Cast


@pytest.fixture
def house(servers: TestServers, django_db_blocker: DjangoDbBlocker) -> Iterator[House]:
    """Committed access as the application's role, and a tenant of this test's own. Nothing is rolled back."""
    from tests.factories.tenancy import make_people, make_tenant  # noqa: PLC0415 - core tests need no Django apps

    with django_db_blocker.unblock():
        tenant = make_tenant()
        yield House(tenant=tenant, people=make_people(tenant))
        connections.close_all()


@pytest.fixture
def world(house: House) -> World:
    """The house furnished; its tools need no company."""
    from tests.factories.world import make_world  # noqa: PLC0415 - as above

    return make_world(house)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder of this test's own."""
    return tmp_path


def pytest_collection_finish() -> None:
    """What was imported until here stays; the collector need not look at it in every test again."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module that is slow as a whole is not even read: what it goes through takes seconds to find."""
    if collection_path.suffix != ".py" or _all(config) or str(collection_path) in _named(config):
        return None
    return WHOLLY_SLOW.search(collection_path.read_text()) is not None or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Tests that take long stand aside unless they are asked for, by `-m` or by their file."""
    if _all(config):
        return
    named = _named(config)
    aside = [
        item
        for item in items
        if item.get_closest_marker("soak")
        or (item.get_closest_marker("slow") and str(item.path) not in named)
    ]
    if aside:
        config.hook.pytest_deselected(items=aside)
        items[:] = [item for item in items if item not in aside]


def _all(config: pytest.Config) -> bool:
    return bool(config.option.markexpr or os.environ.get("INTERLOCK_SOAK"))


def _named(config: pytest.Config) -> set[str]:
    return {str(Path(word.partition("::")[0]).resolve()) for word in config.args}
