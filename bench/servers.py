"""A durable PostgreSQL of the bench's own, migrated, with server and client on cores of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from django.db import connections

from config.devstack.child_process import MIGRATE
from config.devstack.embedded import EmbeddedPostgres

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "bench"


@contextmanager
def database() -> Iterator[EmbeddedPostgres]:
    """Start, migrate, pin; at the end stop it and remove its data. Sets DATABASE_URL for Django, which
    starts later."""
    with TemporaryDirectory(prefix="interlock-bench-", dir=parent()) as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedPostgres(Path(folder), durable=True)
        server.start(log=Path(folder) / "postgres.log")
        try:
            server.ensure_roles()
            server.ensure_database(DATABASE)
            environment = {
                "INTERLOCK_EMBEDDED": "1",
                "INTERLOCK_DATA_DIR": folder,
                "DATABASE_URL": server.url("interlock_app", DATABASE),
                "INTERLOCK_LOG_LEVEL": "ERROR",
            }
            _migrate(environment | {"DATABASE_OWNER_URL": server.url("interlock_owner", DATABASE)})
            os.environ.update(environment)
            _pin(server)
            yield server
        finally:
            server.stop()


def parent() -> str | None:
    """Somewhere an unprivileged server can reach when the bench runs as root."""
    return "/var/tmp" if os.geteuid() == 0 else None  # noqa: S108 - TemporaryDirectory makes the name


def _migrate(environment: dict[str, str]) -> None:
    argv = (sys.executable, *MIGRATE, "-v", "0")
    subprocess.run(argv, check=True, cwd=ROOT, env=os.environ | environment)


@contextmanager
def own_database() -> Iterator[None]:
    """For importing what the test suite furnishes houses with: as it is imported it points Django at no
    database; here it is the measurement's own."""
    held = {name: dict(found) for name, found in connections.settings.items()}
    environment = dict(os.environ)
    try:
        yield
    finally:
        for name, found in held.items():
            now = connections.settings.setdefault(name, {})
            now.clear()
            now.update(found)
        os.environ.clear()
        os.environ.update(environment)


def unpin(superuser: psycopg.Connection) -> None:
    """Let the server, for connections from now on, and this process run anywhere, as in a house."""
    row = superuser.execute("SHOW data_directory").fetchone()
    assert row is not None
    postmaster = int(Path(row[0], "postmaster.pid").read_text().split()[0])
    for process in (postmaster, 0):
        os.sched_setaffinity(process, range(os.cpu_count() or 1))


def _pin(server: EmbeddedPostgres) -> None:
    """The server on the last core, this process on the first: placement alone changes one connection by
    1.6."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 or server.process is None:
        return
    os.sched_setaffinity(server.process.pid, {cores[-1]})
    os.sched_setaffinity(0, {cores[0]})
