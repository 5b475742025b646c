"""`manage.py trace`: what an operator or auditor types."""

from io import StringIO
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from django.core.management import CommandError, call_command

from tenancy.db.ids import fresh_id
from tests.conftest import House
from tests.factories.traces import write_run
from tests.proves import proves
from traces import subcommands

pytestmark = pytest.mark.slow


def typed(*words: object) -> str:
    """What the command answers."""
    out = StringIO()
    call_command("trace", *map(str, words), stdout=out)
    return out.getvalue()


@proves("R-TRACE-3", part="command")
def test_a_whole_trace_is_said_to_be_whole(house: House) -> None:
    assert "1 whole, 0 not" in typed("verify", write_run(house.tenant.id).run)


@proves("R-TRACE-3", part="fault")
def test_an_altered_trace_is_named_and_the_command_fails(house: House, superuser: psycopg.Connection) -> None:
    run = write_run(house.tenant.id).run
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE traces_event SET actor = 'nobody' WHERE run_id = %s AND seq = 3", [run])
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("trace", "verify", str(run), stdout=out)
    assert f"{run}: Event 3, actor: it is not what was hashed" in out.getvalue()


def test_every_run_of_a_tenant_is_verified(house: House) -> None:
    for _ in range(3):
        write_run(house.tenant.id)
    assert "3 whole, 0 not" in typed("verify", "--all", "--tenant", house.tenant.slug)


def test_an_export_is_written_and_verified_as_a_file(house: House, scratch: Path) -> None:
    file = scratch / "run.jsonl"
    typed("export", write_run(house.tenant.id).run, "-o", file)
    assert f"{file}: " not in (answer := typed("verify", "--file", file))
    assert "1 whole" in answer
    file.write_bytes(file.read_bytes()[:-300])
    with pytest.raises(CommandError):
        typed("verify", "--file", file)


@pytest.mark.parametrize(
    "words", [("verify", fresh_id()), ("export", fresh_id()), ("verify", "--file", "/no/such/file")]
)
def test_what_is_not_there_is_said_in_a_sentence(house: House, words: tuple[object, ...]) -> None:
    with pytest.raises(CommandError):
        typed(*words)
    with pytest.raises(CommandError, match="no tenant"):
        typed("verify", "--all", "--tenant", "nobody-lives-here")


def test_a_floor_above_adds_its_own_verb(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def say(run: UUID, options: object) -> list[str]:
        return [f"heard {run}"]

    monkeypatch.setattr(
        subcommands, "_VERBS", {"hear": subcommands.Subcommand("listen", lambda parser: None, say)}
    )
    run = write_run(house.tenant.id).run
    assert typed("hear", run) == f"heard {run}\n"
