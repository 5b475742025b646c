"""What the log tells an operator about a run: one line for each step, without content."""

from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from structlog.testing import capture_logs

from orchestrator.outbound.gateways.send_authorization import SendRefused
from orchestrator.worker.leases import claim_lease
from tests.factories.world import World
from tests.proves import proves

Line = MutableMapping[str, Any]
SUM = "How much is (12 + 30) * 2?"
EVENTS = ("run.", "effect.", "decision.", "lease.")


@pytest.fixture
def lines() -> Iterator[list[Line]]:
    """Collect all lines that are logged during the test."""
    with capture_logs() as found:
        yield found


def steps_of(lines: list[Line], run: UUID) -> list[Line]:
    """Return the lines about the run's steps, each checked for the common fields."""
    found = [line for line in lines if line["event"].startswith(EVENTS) and line.get("run") == str(run)]
    for line in found:
        assert line.keys() >= {"action", "tenant", "run", "ms"}
        assert type(line["ms"]) is int
        assert line["ms"] >= 0
    return found


@proves("R-TRACE-14", part="one line for each step of a run")
def test_a_run_that_waits_for_approval_is_logged_step_by_step(world: World, lines: list[Line]) -> None:
    run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    world.drive(run)
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver, reason="It is due.")
    world.drive(run)
    found = steps_of(lines, run)
    events = [line["event"] for line in found]
    assert events[0] == "run.claimed"
    assert "effect.sent" in events
    assert events.index("run.waiting") < events.index("decision.taken")
    assert {line["tenant"] for line in found} == {str(world.id)}
    assert all("node" in line for line in found if line["event"] != "decision.taken")
    waiting = found[events.index("run.waiting")]
    assert (waiting["action"], waiting["status"]) == ("wait", "awaiting_gate")
    decided = found[events.index("decision.taken")]
    assert (decided["action"], decided["request"], decided["decision"], decided["principal"]) == (
        "decide", str(request.id), "approve", str(world.people.approver.principal.id),
    )  # fmt: skip
    tools = [line["tool"] for line in found if line["event"] == "effect.sent" and "tool" in line]
    assert "payments.refund" in tools
    assert "A-1001" not in repr(lines)
    assert "It is due." not in repr(lines)


def test_a_run_that_succeeds_is_finished_and_its_model_calls_were_sent(
    world: World, lines: list[Line]
) -> None:
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    found = steps_of(lines, run)
    last = found[-1]
    assert (last["event"], last["action"], last["status"], last["code"]) == (
        "run.finished", "finish", "completed", "SUCCESS",
    )  # fmt: skip
    assert any("model" in line for line in found if line["event"] == "effect.sent")
    assert SUM not in repr(lines)


def test_a_run_that_fails_is_a_warning(world: World, lines: list[Line]) -> None:
    run = world.submit("tool-loop", SUM, budget={"model_turns": "1"})
    world.drive(run)
    last = steps_of(lines, run)[-1]
    assert (last["event"], last["action"], last["log_level"]) == ("run.failed", "fail", "warning")
    assert last["code"] == world.run(run).terminal_code


def test_a_worker_that_lost_its_lease_says_so(
    world: World, lines: list[Line], superuser: psycopg.Connection
) -> None:
    run = world.submit("tool-loop", SUM)
    thief = "another worker"

    def steal(point: str) -> None:
        if point == "performed":
            query = "UPDATE orchestrator_run SET lease_until = clock_timestamp() WHERE id = %s"
            superuser.execute(query, (run,))
            claim_lease(world.id, run, thief)

    worker = replace(world.worker, fault=steal)
    worker.advance(run)
    last = steps_of(lines, run)[-1]
    assert (last["event"], last["action"], last["log_level"]) == ("lease.lost", "lose_lease", "warning")
    assert (last["worker"], last["cause"]) == (worker.name, "taken over")


def refuse(_: object) -> SendRefused:
    """Answer for a permit that the call may not be sent."""
    return SendRefused(reason="stopped")


def test_a_call_that_was_not_sent_is_no_sent_effect(
    world: World, lines: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.outbound.gateways.database_authorization.DatabasePermit.check", refuse)
    run = world.submit("tool-loop", SUM)
    world.drive(run)
    assert "effect.sent" not in [line["event"] for line in steps_of(lines, run)]
