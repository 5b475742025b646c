"""The local stack's plan for the supervisor: embedded servers, one-time steps and messages."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import psycopg

from config.data_format import (
    FORMAT,
    FORMAT_FILE,
    explain_database_refusal,
    explain_folder_refusal,
    read_folder_format,
)
from config.devstack import demo_database, process_specs
from config.devstack.child_process import Command, make_folder, wait_for
from config.devstack.embedded import EmbeddedPostgres, EmbeddedValkey
from config.devstack.process_specs import Part, build_python_command
from config.devstack.secrets_file import secrets_in, write_private
from config.devstack.supervisor import Journal, StartFailedError, Step, Supervisor
from config.env import SERVERS_FILE, ExplicitSettings, data_dir, unwrap_secret
from tenancy.core.demo_users import CAST, HOUSES, PASSWORD

PORT_SECONDS = 15.0
NOTED = (
    "DATABASE_URL", "REDIS_URL", "INTERLOCK_SECRET_KEY", "INTERLOCK_DEMO_URL", "INTERLOCK_EMBEDDED",
    "INTERLOCK_PORT",
)  # fmt: skip


class LocalStack:
    """Everything that `manage.py up` decides before it starts the first process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.given = ExplicitSettings()
        self.data = data_dir()
        self.environment: dict[str, str] = {}
        self.owner_url: str | None = None
        self.postgres: EmbeddedPostgres | None = None
        self._seeded = False
        self._lock: IO[str] | None = None

    def enter(self) -> None:
        """Check the format of the data folder, lock the folder for this supervisor and check the port.

        Raises: StartFailedError; ValueError if the folder's format is no number.
        """
        if refusal := explain_folder_refusal(self.data):
            raise StartFailedError(refusal)
        make_folder(self.data, 0o711 if os.geteuid() == 0 else 0o700)
        self._lock = (self.data / "supervisor.lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Interlock is already up on {self.data}; stop it or set INTERLOCK_DATA_DIR."
            raise StartFailedError(message) from None
        if read_folder_format(self.data) is None:
            write_private(self.data / FORMAT_FILE, f"{FORMAT}\n")
        killed_before = self._begin_lock_file()
        patience = PORT_SECONDS if killed_before else 0.0
        try:
            # The web server of a killed supervisor ends by itself and keeps the port until then.
            wait_for(lambda: not process_specs.port_taken(self.given.host, self.given.port), patience, "")
        except TimeoutError:
            where = f"Port {self.given.port} of {self.given.host}"
            raise StartFailedError(
                f"{where} is in use by somebody else; set INTERLOCK_PORT to another."
            ) from None

    def _begin_lock_file(self) -> bool:
        """Write this supervisor's id into the lock file; return whether a killed one left its id."""
        assert self._lock is not None  # noqa: S101 - `enter` holds it
        killed_before = self._lock.tell() > 0
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()
        return killed_before

    def leave(self) -> None:
        """Empty the lock file: this supervisor ended its children itself."""
        if self._lock is not None:
            self._lock.truncate(0)

    def steps(self) -> list[Step | tuple[Step, ...]]:
        """Return the steps in order; the steps of one tuple run concurrently.

        The demo company is ready before the worker, whose runs may act on the company.
        """
        database, broker = self._database(), self._broker()
        self._furnish()
        given, environment = self.given, self.environment
        threads, drain = given.worker_threads, float(given.drain_seconds)
        return [
            (database, broker),
            self._write_down,
            (self._prepare, *self._demo(), *self._books()),
            (
                process_specs.build_web_part(given.host, given.port, environment),
                process_specs.build_worker_part(self.data, environment, threads=threads, drain=drain),
                process_specs.build_beat_part(self.data, environment),
            ),
        ]

    def _database(self) -> Step:
        if (url := unwrap_secret(self.given.database_url)) is not None:
            self.owner_url = unwrap_secret(self.given.database_owner_url)
            self.environment["DATABASE_URL"] = url
            return lambda: _check_external_database(url)
        self.postgres = postgres = EmbeddedPostgres(self.data)
        self.owner_url = postgres.url("interlock_owner")
        self.environment |= {"DATABASE_URL": postgres.url("interlock_app"), "INTERLOCK_EMBEDDED": "1"}
        before, after = postgres.prepare, postgres.ensure_roles
        return Part("postgres", postgres.command, postgres.ready, before=before, after=after)

    def _broker(self) -> Step:
        if (url := unwrap_secret(self.given.redis_url)) is not None:
            self.environment["REDIS_URL"] = url
            return lambda: _check_external_broker(url)
        valkey = EmbeddedValkey(self.data)
        self.environment["REDIS_URL"] = valkey.url
        return Part("valkey", valkey.command, valkey.ready, before=valkey.prepare)

    def _demo(self) -> list[Step]:
        if self.given.demo_url or not self.given.demo or not find_spec("demo"):
            return []
        url = self.environment["INTERLOCK_DEMO_URL"]
        return [process_specs.demo_company(url, self.data / "demo", self.environment)]

    def _books(self) -> list[Step]:
        """Return the step that creates the demo database; none if the operator configured databases."""
        named = self.given.demo_url or self.given.databases
        if self.postgres is None or named or not self.given.demo or not find_spec("demo"):
            return []
        postgres, passwords = self.postgres, demo_database.fresh_passwords()
        self.environment["INTERLOCK_DATABASES"] = demo_database.format_database_urls(postgres, passwords)
        return [lambda: demo_database.create_demo_database(postgres, passwords)]

    def _furnish(self) -> None:
        """Set the environment of every child: the given variables and the stack's own.

        The database URL of the owner is left out.
        """
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_OWNER_URL"}
        added = {
            "INTERLOCK_SECRET_KEY": unwrap_secret(self.given.secret_key) or secrets_in(self.data).secret_key,
            "INTERLOCK_DATA_DIR": str(self.data),
            "INTERLOCK_PORT": str(self.given.port),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "INTERLOCK_POOL": "1",
            "PYTHONUNBUFFERED": "1",
        }
        if self.given.demo_url or self.given.demo:
            added["INTERLOCK_DEMO_URL"] = (
                self.given.demo_url or f"http://127.0.0.1:{process_specs.free_port()}"
            )
        self.environment = kept | self.environment | added

    def _prepare(self) -> Command:
        """Return the command for migrations, checks and seed in one process.

        Each separate process would spend seconds on imports.
        """
        environment, wanted = self.environment, ["--seed"] if self._seeds() else []
        if self.owner_url is None:
            self.journal.say("DATABASE_OWNER_URL is not set: the database is taken as migrated")
        else:
            environment = environment | {"DATABASE_OWNER_URL": self.owner_url}
            wanted.append("--migrate")
        return build_python_command("manage.py", "prepare", *wanted, environment=environment)

    def _write_down(self) -> None:
        """Write the addresses for `config.env`, so that `manage.py key create` needs no setting."""
        known = {name: self.environment[name] for name in NOTED if name in self.environment}
        if self.given.database_url is None and self.owner_url is not None:
            known["DATABASE_OWNER_URL"] = self.owner_url
        write_private(self.data / SERVERS_FILE, json.dumps(known))

    def _seeds(self) -> bool:
        """Return whether to seed the demo people.

        The demo people have a published password, so an external database gets them only on explicit request.
        """
        if not self.given.demo:
            return False
        if self.given.database_url is not None and not self.given.seed_demo:
            self.journal.say("the database is yours: INTERLOCK_SEED_DEMO=1 would put the demo people in it")
            return False
        self._seeded = True
        return True

    def announce(self) -> None:
        """Print the summary, with the address and the demonstration accounts last (R-TOOL-23)."""
        self.journal.show(["", *self._models(), *self._keys(), "", *self._address(), *self._accounts(), ""])

    def _models(self) -> list[str]:
        given = self.given
        if given.has_model_key:
            named = given.model or "those of the configured provider"
            return [f"Models: {named}, and the scripted scenarios", *self._describe_unknown_price()]
        return [
            "Models: none is configured, so scripted scenarios play:",
            f"  {', '.join(list_scenario_names()) or 'none yet'}",
            "  For a real model set OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENAI_BASE_URL,",
            "  and INTERLOCK_MODEL.",
        ]

    def _describe_unknown_price(self) -> list[str]:
        """Describe the charge of calls if the price of the operator's own model is not configured."""
        given = self.given
        if not given.openai_base_url or given.model_price is not None:
            return []
        worst = f"${given.worst_case_usd_per_mtok} a million tokens"
        said = f"charged at {worst}" if given.unknown_price == "worst" else "refused"
        return [
            f"  Nobody said what the model at {given.openai_base_url} costs:",
            f"  where no price is listed, calls are {said}.",
            "  INTERLOCK_MODEL_PRICE=0 says that you run it yourself.",
        ]

    def _keys(self) -> list[str]:
        if not self._seeded:
            return ["Open a tenant: .venv/bin/python manage.py tenant create --help"]
        return ["A key for programs: .venv/bin/python manage.py key create --tenant demo --role client"]

    def _address(self) -> list[str]:
        where = f"http://{self.given.host}:{self.given.port}"
        return [f"Interlock is up at {where}", f"  API {where}/api/v1   Ctrl-C stops everything"]

    def _accounts(self) -> list[str]:
        if not self._seeded:
            return []
        first, *others = (slug for slug, _name in HOUSES)
        lines = ["", f"Demonstration accounts (password for all: {PASSWORD})"]
        lines += [f"  {title + '@' + first + '.example':<32} {role.value}" for title, role, _queues in CAST]
        return [*lines, *(f"  The same people are in a second tenant: …@{slug}.example" for slug in others)]


def _check_external_database(url: str) -> None:
    """Raises: StartFailedError if the database does not answer or has another format."""
    try:
        connection = psycopg.connect(url, connect_timeout=3)
    except psycopg.OperationalError:
        raise StartFailedError("Cannot reach the database of DATABASE_URL.") from None
    with connection, connection.cursor() as cursor:
        if refusal := explain_database_refusal(cursor, f"{connection.info.dbname} of DATABASE_URL"):
            raise StartFailedError(refusal)


def _check_external_broker(url: str) -> None:
    """Raises: StartFailedError if the broker does not answer."""
    if not process_specs.broker_answers(url):
        raise StartFailedError("Cannot reach the broker of REDIS_URL.")


def run_stack() -> int:
    """Run the whole stack until it is stopped: 0 after a requested stop, 1 if the start failed."""
    journal = Journal()
    house = LocalStack(journal)
    try:
        house.enter()
        steps = house.steps()
    except (StartFailedError, OSError, ValueError) as failure:
        journal.say(str(failure))
        return 1
    status = asyncio.run(Supervisor(journal).run(steps, house.announce))
    house.leave()
    return status


def list_scenario_names() -> list[str]:
    """List the names of the bundled scripted scenarios."""
    folder = Path(__file__).resolve().parents[2] / "orchestrator" / "scenarios"
    return sorted(path.stem for path in folder.glob("*.yaml"))
