"""The last lines of a start, and which lines of the log are routine."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.devstack.stack import LocalStack
from config.devstack.supervisor import Journal
from config.observability import logs
from tenancy.core.demo_users import PASSWORD
from tests.proves import proves


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> io.StringIO:
    """What a start prints; no model is configured, and nothing is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DATABASE_URL", "INTERLOCK_DEMO"):
        monkeypatch.delenv(name, raising=False)
    return io.StringIO()


def test_announcement_ends_with_the_address_and_the_accounts(told: io.StringIO) -> None:
    house = LocalStack(Journal(told))
    house.steps()
    assert house._seeds()
    house.announce()
    lines = [line for line in told.getvalue().splitlines() if line]
    at = lines.index("Interlock is up at http://127.0.0.1:8000")
    assert [line for line in lines[:at] if "@" in line] == []
    assert lines[at + 2] == f"Demonstration accounts (password for all: {PASSWORD})"
    assert lines[at + 3].split() == ["operator@demo.example", "operator"]
    assert lines[-1].endswith("…@harbor.example")
    assert max(map(len, lines[at:])) <= 80


@proves("R-SEC-10", part="no demonstration where it is switched off")
def test_start_without_the_demonstration_seeds_and_starts_none_of_it(
    told: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DEMO", "0")
    house = LocalStack(Journal(told))
    house.steps()
    assert not house._seeds()
    assert house._demo() == house._books() == []
    assert "INTERLOCK_DEMO_URL" not in house.environment
    house.announce()
    assert "example" not in told.getvalue()
    assert "manage.py tenant create" in told.getvalue()


@pytest.fixture
def levels() -> Iterator[None]:
    """The log's settings as they were, afterwards."""
    yield
    logs.configure_logging(style="auto", level="INFO")


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(("level", "shown"), [("INFO", False), ("DEBUG", True)])
def test_routine_lines_of_worker_scheduler_and_sockets_are_shown_at_the_level_debug_alone(
    level: str, *, shown: bool
) -> None:
    logs.configure_logging(style="auto", level=level)
    for name in ("celery.beat", "celery.app.trace", "django_structlog.celery.receivers", "uvicorn.error"):
        assert logging.getLogger(name).isEnabledFor(logging.INFO) is shown, name
        assert logging.getLogger(name).isEnabledFor(logging.WARNING)
