"""The servers the tests run against: one PostgreSQL shared by every pytest process, one Valkey each.

The first process starts PostgreSQL, the others adopt it, the last one stops it: whoever uses it holds a
shared lock on `users.lock`, which the kernel releases even after kill -9. The cluster stays, so a later
session starts at once. Tests never use an address from the environment: the ledgers they fill cannot be
emptied again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import django
import psycopg
from psycopg import sql

from config.devstack.child_process import MIGRATE, is_process_alive, make_folder
from config.devstack.embedded import EmbeddedPostgres

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".data" / f"test-{os.geteuid()}"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the exclusive lock `name` among all pytest processes of this account."""
    with (FOLDER / f"{name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class TestServers:
    """The shared PostgreSQL, and the database this process alone uses."""

    __test__ = False

    def __init__(self, suite: str, worker: str) -> None:
        mode = 0o711 if os.geteuid() == 0 else 0o700
        make_folder(FOLDER.parent, mode)
        make_folder(FOLDER, mode)
        with locked("start"):
            self.postgres = EmbeddedPostgres(FOLDER, durable=False, connections=400)
        self.template = f"{suite}_template"
        self.database = f"{suite}_{worker}_{os.getpid()}"
        self._users: IO[str] | None = None
        self._started: subprocess.Popen[bytes] | None = None

    def acquire(self) -> None:
        """Join the users of the server, starting it when nobody has."""
        with locked("start"):
            self._users = (FOLDER / "users.lock").open("a")
            fcntl.flock(self._users, fcntl.LOCK_SH)
            if not self.postgres.ready():
                self.postgres.start(with_parent=False, log=FOLDER / "postgres.log")
                # Whoever leaves last stops it, by its pid file; it need not be the one who started it.
                self._started, self.postgres.process = self.postgres.process, None
            self._drop_abandoned()

    def release(self) -> None:
        """Leave; the last one stops the server."""
        with locked("start"):
            if self._users is None:
                return
            self._drop(self.database)
            fcntl.flock(self._users, fcntl.LOCK_UN)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                self.postgres.stop()
                if self._started is not None:
                    self._started.wait(30)
            self._users.close()
            self._users = None

    def prepare(self) -> None:
        """Bring the template up to the migrations, and copy it for this process."""
        wanted = migrations_digest()
        with locked(self.template):
            if self._digest() != wanted:
                self._build_template(wanted)
            self.postgres.ensure_database(self.database, self.template)

    def superuser(self) -> psycopg.Connection:
        """A superuser's connection to this process's database, in autocommit."""
        return self.postgres.connect(self.database)

    def environment(self) -> dict[str, str]:
        """What a child process needs to work on the same database as this one."""
        return {
            "INTERLOCK_DATA_DIR": str(FOLDER),
            "INTERLOCK_EMBEDDED": "1",
            "DATABASE_URL": self.postgres.url("interlock_app", self.database),
        }

    def _digest(self) -> str | None:
        query = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"
        with self.postgres.connect() as connection:
            row = connection.execute(query, [self.template]).fetchone()
        return str(row[0]) if row else None

    def _build_template(self, wanted: str) -> None:
        draft = f"{self.template}_draft"
        self._drop(draft)
        self.postgres.ensure_database(draft)
        environment = self.environment() | {
            "DATABASE_URL": self.postgres.url("interlock_app", draft),
            "DATABASE_OWNER_URL": self.postgres.url("interlock_owner", draft),
            "PATH": os.environ["PATH"],
        }
        argv = (sys.executable, *MIGRATE, "-v", "0")
        done = subprocess.run(argv, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            message = f"migrate failed:\n{done.stdout}{done.stderr}"
            raise RuntimeError(message)
        self._drop(self.template)
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
        comment = sql.SQL("COMMENT ON DATABASE {} IS {}")
        with self.postgres.connect() as connection:
            connection.execute(rename.format(sql.Identifier(draft), sql.Identifier(self.template)))
            connection.execute(comment.format(sql.Identifier(self.template), sql.Literal(wanted)))

    def _drop(self, name: str) -> None:
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        with self.postgres.connect() as connection:
            connection.execute(statement)

    def _drop_abandoned(self) -> None:
        """Databases of processes that were killed before they could drop them."""
        with self.postgres.connect() as connection:
            names = [row[0] for row in connection.execute("SELECT datname FROM pg_database ORDER BY datname")]
        for name in names:
            pid = name.rpartition("_")[2]
            if pid.isdigit() and not is_process_alive(int(pid)):
                self._drop(name)


def migrations_digest() -> str:
    """One digest over everything that decides the schema."""
    hashed = hashlib.sha256(django.get_version().encode())
    for path in sorted(
        [
            *ROOT.glob("*/migrations/*.py"),
            *ROOT.glob("*/migrations/sql/*.sql"),
            ROOT / "tenancy/db/integrity_guards.py",
            ROOT / "config/data_format.py",
            ROOT / "config/settings.py",
        ]
    ):
        if path.exists():
            hashed.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()
