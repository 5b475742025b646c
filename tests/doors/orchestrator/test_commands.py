"""`manage.py stop` and `manage.py trace replay`: what an operator types, and what it does to a run."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from orchestrator.runs.models.emergency_stop import EmergencyStop
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.world import World
from tests.proves import proves
from traces.actions import erase_run_payloads
from traces.models import Payload

pytestmark = pytest.mark.slow

SUM = "How much is (12 + 30) * 2?"


def typed(*words: str) -> str:
    """What a command prints."""
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


@proves("R-SEC-9")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tenant",), "USER_CANCEL"),
        (("workflow", "tool-loop"), "USER_CANCEL"),
        (("workflow", "other"), "SUCCESS"),
    ],
)
def test_a_stop_ends_a_running_run_before_its_next_effect(
    world: World, words: tuple[str, ...], code: str
) -> None:
    run = world.submit("tool-loop", SUM)
    stop = typed(
        "stop", "set", *words, "--tenant", world.house.tenant.slug, "--reason", "odd figures", "--yes"
    ).strip()
    ended = world.drive(run)
    assert ended.terminal_code == code
    assert ("model_called" in world.kinds(run)) == (code == "SUCCESS")
    assert stop in typed("stop", "list")
    assert typed("stop", "lift", stop, "--reason", "explained").strip() == "lifted"
    assert stop not in typed("stop", "list")
    world.sound(run)


@proves("R-SEC-9", part="a tool")
def test_a_stopped_tool_takes_no_call_of_a_running_run(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    where = ("--tenant", world.house.tenant.slug, "--reason", "wrong sums")
    stop = typed("stop", "set", "tool", "calculator.evaluate", *where, "--yes").strip()
    assert world.drive(run).terminal_code != "SUCCESS"
    assert "fact_committed" not in world.kinds(run)
    world.sound(run)
    typed("stop", "lift", stop, "--reason", "mended")
    later = world.submit("tool-loop", SUM)
    assert world.drive(later).terminal_code == "SUCCESS"
    assert "fact_committed" in world.kinds(later)


@proves("R-SEC-9", part="global")
def test_a_global_stop_is_everybodys(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    stop = typed("stop", "set", "global", "--reason", "a drill", "--yes").strip()
    try:
        assert world.drive(run).terminal_code == "USER_CANCEL"
    finally:
        typed("stop", "lift", stop, "--reason", "over")
    assert EmergencyStop.objects.get(id=stop).lifted_at is not None


@pytest.mark.parametrize(
    "words",
    [
        ("set", "tool", "--tenant", "{slug}", "--reason", "x"),
        ("set", "tenant", "a-target", "--tenant", "{slug}", "--reason", "x"),
        ("set", "tenant", "--reason", "x"),
        ("set", "tenant", "--tenant", "nobody", "--reason", "x"),
        ("set", "global", "--tenant", "{slug}", "--reason", "x"),
        ("set", "planet", "--reason", "x"),
        ("set", "global"),
        ("lift", "00000000-0000-7000-8000-000000000000", "--reason", "x"),
    ],
)
def test_a_stop_that_makes_no_sense_is_refused(world: World, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        typed("stop", *(word.format(slug=world.house.tenant.slug) for word in words))


def asked_to_stop(monkeypatch: pytest.MonkeyPatch, answer: str | None, *words: str) -> tuple[str, str]:
    """What `stop set` prints, and says on standard error, where somebody answers so (None: nobody)."""
    out, said = StringIO(), StringIO()
    monkeypatch.setattr("sys.stdin", StringIO("" if answer is None else f"{answer}\n"))
    try:
        call_command("stop", "set", *words, "--reason", "a drill", stdout=out, stderr=said)
    except CommandError as refused:
        return out.getvalue(), f"{said.getvalue()}{refused}"
    return out.getvalue(), said.getvalue()


@proves("R-SEC-9", part="the command says how many runs it ends and asks once more")
@pytest.mark.parametrize("answer", ["y", "n", "", None])
def test_a_stop_by_command_counts_the_runs_it_ends_and_waits_for_a_yes(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    for _ in range(2):
        world.submit("tool-loop", SUM)
    stop, said = asked_to_stop(monkeypatch, answer, "tenant", "--tenant", world.house.tenant.slug)
    assert "2 runs are under way there" in said
    assert "Put the stop of tenant in force? [y/N]" in said
    with tenant_transaction(world.id):
        stops = list(EmergencyStop.objects.filter(tenant_id=world.id, lifted_at=None))
    assert [str(one.id) for one in stops] == stop.split()
    assert len(stops) == (answer == "y")
    assert ("a script says --yes" in said) == (answer is None)


@proves("R-SEC-9", part="the command says what a stop of a tool, and one of nothing, ends")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tool", "calculator.evaluate"), "It ends no run by itself"),
        (("workflow", "other"), "No run is under way there"),
        (("workflow", "tool-loop"), "1 run is under way there: it ends as cancelled"),
    ],
)
def test_a_stop_by_command_says_what_it_ends_though_nobody_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    world.submit("tool-loop", SUM)
    stop, told = asked_to_stop(monkeypatch, None, *words, "--tenant", world.house.tenant.slug, "--yes")
    assert said in told
    assert "[y/N]" not in told
    assert len(stop.split()) == 1


@proves("R-TRACE-6", part="command")
def test_replay_says_how_many_records_come_out_the_same(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    ended = world.drive(run)
    assert typed("trace", "replay", str(run)) == f"{run}: {ended.record_number} records come out the same\n"


@proves("R-TRACE-6", part="command, a difference")
def test_replay_of_what_cannot_be_replayed_says_so(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    with tenant_transaction(world.id):
        assert Payload.objects.filter(run_id=run).exists()
        erase_run_payloads(run)
    with pytest.raises(CommandError, match="erased"):
        typed("trace", "replay", str(run))
