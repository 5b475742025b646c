"""What the house refuses to start with, and what it says of its health."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from config.devstack.embedded import EmbeddedValkey
from tests.proves import proves
from tests.servers import ROOT, TestServers

pytestmark = pytest.mark.slow


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` with this environment alone."""
    argv = [sys.executable, "manage.py", *arguments]
    known = {"PATH": os.environ["PATH"], "INTERLOCK_DATA_DIR": "/nonexistent"} | environment
    return subprocess.run(argv, check=False, cwd=ROOT, env=known, capture_output=True, text=True, timeout=60)


def _checked(url: str) -> str:
    done = manage("check", "--database", "default", DATABASE_URL=url, INTERLOCK_EMBEDDED="1")
    return done.stdout + done.stderr


@proves("R-API-10", part="a wrong environment is named")
@pytest.mark.parametrize("command", ["up", "check"])
def test_a_wrong_environment_is_named_and_not_shown(command: str) -> None:
    wrong = {"OPENAI_BASE_URL": "http://house:s3cret@127.0.0.1/v1", "INTERLOCK_PORT": "eighty"}
    done = manage(command, **wrong)
    assert done.returncode == 1
    named = [line.partition(":")[0] for line in done.stderr.splitlines()]
    assert named == ["INTERLOCK_PORT", "OPENAI_BASE_URL"]
    assert "s3cret" not in done.stdout + done.stderr
    done = manage(command, INTERLOCK_DATABASES="s3cret")
    assert (done.returncode, done.stderr) == (1, "INTERLOCK_DATABASES: this is no JSON\n")


@proves("R-SEC-1", part="powerless role")
def test_a_superuser_is_refused(servers: TestServers) -> None:
    said = _checked(servers.postgres.url("interlock_super", servers.database))
    assert "interlock.E003" in said


@proves("R-SEC-1", part="no bypass")
def test_a_role_that_bypasses_row_security_is_refused(
    servers: TestServers, superuser: psycopg.Connection
) -> None:
    name = f"bypass_{os.getpid()}"
    superuser.execute(f"CREATE ROLE {name} LOGIN BYPASSRLS PASSWORD 'x'")
    try:
        said = _checked(f"postgresql://{name}:x@/{servers.database}?host={servers.postgres.sockets}")
    finally:
        superuser.execute(f"DROP ROLE {name}")
    assert "interlock.E004" in said


def test_the_owner_of_a_ledger_is_refused(servers: TestServers, superuser: psycopg.Connection) -> None:
    said = _checked(servers.postgres.url("interlock_owner", servers.database))
    assert "interlock.E006" in said


@proves("R-SEC-1", part="no way to a powerful role")
@pytest.mark.parametrize(
    ("granted", "code"),
    [("interlock_owner", "E006"), ("interlock_super", "E003")],
    ids=["owner", "superuser"],
)
def test_a_role_that_may_become_a_powerful_one_is_refused(
    servers: TestServers, superuser: psycopg.Connection, granted: str, code: str
) -> None:
    name = f"member_{os.getpid()}"
    superuser.execute(f"CREATE ROLE {name} LOGIN NOINHERIT PASSWORD 'x'")
    try:
        superuser.execute(f"GRANT {granted} TO {name}")
        said = _checked(f"postgresql://{name}:x@/{servers.database}?host={servers.postgres.sockets}")
    finally:
        superuser.execute(f"DROP ROLE {name}")
    assert f"interlock.{code}" in said


def test_the_application_s_role_is_accepted(servers: TestServers) -> None:
    assert "no issues" in _checked(servers.postgres.url("interlock_app", servers.database))


@proves("R-SEC-8", part="secret key")
def test_no_secret_key_outside_embedded_mode_is_refused() -> None:
    assert "interlock.E001" in manage("check", "--deploy").stderr
    web = subprocess.run(
        [sys.executable, "-m", "config.devstack.serve"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "INTERLOCK_DATA_DIR": "/nonexistent"},
        timeout=60,
    )
    assert web.returncode != 0
    assert "No secret key is configured." in web.stderr


def run_worker(broker: EmbeddedValkey, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a worker as `manage.py up` does until it ends. Raises TimeoutExpired when it does not."""
    argv = [sys.executable, "-m", "celery", "-A", "config.celery", "-q", "worker", "--pool", "threads"]
    known = {"PATH": os.environ["PATH"], "C_FORCE_ROOT": "1", "INTERLOCK_POOL": "1", "REDIS_URL": broker.url}
    return subprocess.run(
        argv, check=False, cwd=ROOT, env=known | environment, capture_output=True, text=True, timeout=90
    )


@proves("R-SEC-8", part="a worker on a role that owns a ledger ends")
@pytest.mark.timeout(150)
def test_a_worker_on_a_role_that_owns_a_ledger_ends(
    servers: TestServers, valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    owner = servers.postgres.url("interlock_owner", servers.database)
    mark = tmp_path / "ready"
    environment = servers.environment() | {"DATABASE_URL": owner, "INTERLOCK_READY_FILE": str(mark)}
    ended = run_worker(valkey, **environment)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "could switch the ledger's triggers off" in ended.stdout + ended.stderr
    assert not mark.exists()


@proves("R-SEC-8", part="a worker whose database does not answer ends")
@pytest.mark.timeout(150)
def test_a_worker_whose_database_does_not_answer_ends(
    servers: TestServers, valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    nowhere = "postgresql://interlock_app:x@127.0.0.1:1/none"
    mark = tmp_path / "ready"
    environment = servers.environment() | {"DATABASE_URL": nowhere, "INTERLOCK_READY_FILE": str(mark)}
    ended = run_worker(valkey, **environment)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "The database does not answer." in ended.stdout + ended.stderr
    assert not mark.exists()


@proves("R-SEC-8", part="check --deploy")
@proves("R-SEC-5", part="nothing of HSTS, cookies and frames that the deployment check would miss")
def test_the_deployment_check_is_clean() -> None:
    done = manage(
        "check", "--deploy", "--fail-level", "WARNING",
        INTERLOCK_SECRET_KEY="k0" * 30 + "abcdefgh", INTERLOCK_HTTPS="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_no_model_changed_without_its_migration(servers: TestServers) -> None:
    done = manage("makemigrations", "--check", "--dry-run", **servers.environment())
    assert done.returncode == 0, done.stdout + done.stderr


@proves("R-TRACE-14", part="health")
def test_ready_when_both_answer(servers: TestServers, valkey: EmbeddedValkey, settings: Settings) -> None:
    settings.REDIS_URL = valkey.url
    assert Client().get("/readyz").json()["status"] == "ready"


@proves("R-TRACE-14", part="degraded")
def test_a_dead_broker_degrades_and_no_more(servers: TestServers, settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nonexistent/valkey.sock"
    response = Client().get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "degraded")


@proves("R-TRACE-14", part="unready")
def test_a_dead_database_is_unready(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nonexistent/valkey.sock"
    monkeypatch.setattr("config.observability.health.database_answers", lambda: False)
    assert Client().get("/readyz").status_code == 503
    assert Client().get("/livez").status_code == 200


@proves("R-TRACE-14", part="logs")
def test_a_log_line_carries_the_run_it_is_about(tmp_path: Path) -> None:
    program = (
        "import structlog, config.observability.logs as l; l.configure_logging(style='json', level='INFO');"
        "structlog.contextvars.bind_contextvars(run_id='run-7');"
        "import logging; logging.getLogger('x').info('plain'); structlog.get_logger('y').info('rich', n=1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True, text=True
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["event"], line["run_id"]) for line in lines] == [("plain", "run-7"), ("rich", "run-7")]
