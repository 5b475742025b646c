"""Retrying a run by the API: its checkpoints, the further run, and every refusal."""

from uuid import UUID

import pytest

from orchestrator.runs.actions.run_signals import cancel
from tenancy.core.roles import Role, Scope, scopes_of
from tests.doors.api.program import Program, narrow_program, program, refusal
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


@pytest.fixture
def ended(world: World) -> str:
    """A run that somebody stopped."""
    run = world.submit("tool-loop", SUM)
    cancel(world.id, run, by=world.people.operator.id, reason="Not now.")
    assert world.drive(run).terminal_code == "USER_CANCEL"
    return str(run)


@proves("R-SESS-9", part="retry by the API")
def test_a_run_is_retried_and_both_say_so(world: World, operator: Program, ended: str) -> None:
    before = operator.get(f"/runs/{ended}").json()
    assert (before["retry_of"], before["retried_as"]) == (None, None)
    answer = operator.post(f"/runs/{ended}/retry", {"reason": "The model is back.", "record": 0})
    assert answer.status_code == 202, answer.json()
    accepted = answer.json()
    again = accepted["run"]["id"]
    assert (accepted["id"], accepted["run"]["status"]) == (before["task"], "queued")
    assert accepted["links"]["run"] == f"/api/v1/runs/{again}"
    assert operator.get(f"/runs/{again}").json()["retry_of"] == {"run": ended, "record": 0}
    assert operator.get(f"/runs/{ended}").json()["retried_as"] == again
    listed = {row["id"]: row["retry_of"] for row in operator.get("/runs").json()["results"]}
    assert listed == {ended: None, again: {"run": ended, "record": 0}}
    assert world.drive(UUID(again)).terminal_code == "SUCCESS"


@proves("R-SESS-9", part="checkpoints by the API")
def test_checkpoints_come_in_pages_newest_first(world: World, operator: Program, ended: str) -> None:
    whole = operator.get(f"/runs/{ended}/checkpoints").json()
    assert whole["next"] is None
    rows = whole["results"]
    assert rows == sorted(rows, key=lambda row: row["record"], reverse=True)
    assert rows[-1] == {
        "record": 0, "at": rows[-1]["at"], "node": rows[-1]["node"], "next": "Looks at the goal",
        "retryable": True, "refused": None,
    }  # fmt: skip
    paged, address = [], f"/runs/{ended}/checkpoints?limit=1"
    while address:
        page = operator.get(address).json()
        paged += page["results"]
        address = (page["next"] or "").removeprefix("/api/v1")
    assert paged == rows


def test_a_checkpoint_says_why_no_retry_may_begin_there(world: World, operator: Program) -> None:
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"
    rows = operator.get(f"/runs/{run}/checkpoints").json()["results"]
    assert rows
    assert {(row["retryable"], row["refused"]["code"]) for row in rows} == {(False, "run-succeeded")}


@proves("W1", part="a retry")
def test_the_same_key_is_one_retry(operator: Program, ended: str) -> None:
    body = {"reason": "Again."}
    first = operator.post(f"/runs/{ended}/retry", body, once="one")
    second = operator.post(f"/runs/{ended}/retry", body, once="one")
    assert first.json() == second.json()
    assert second["Idempotent-Replay"] == "true"
    assert refusal(operator.post(f"/runs/{ended}/retry", body)) == (409, "retried-already")


@proves("R-SESS-9", part="retry by the API")
def test_each_refusal_has_its_code(world: World, operator: Program, ended: str) -> None:
    body = {"reason": "Again."}
    live = world.submit("tool-loop", SUM)
    assert refusal(operator.post(f"/runs/{live}/retry", body)) == (409, "run-not-over")
    world.drive(live)
    assert refusal(operator.post(f"/runs/{live}/retry", body)) == (409, "run-succeeded")
    past = {"record": 10**6, **body}
    assert refusal(operator.post(f"/runs/{ended}/retry", past)) == (409, "no-checkpoint")
    for unknown in (world.id, "x", "0"):
        assert refusal(operator.post(f"/runs/{unknown}/retry", body)) == (404, "not-found")
        assert refusal(operator.get(f"/runs/{unknown}/checkpoints")) == (404, "not-found")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": "x" * 501},
        {"reason": 5},
        {"reason": "x", "record": -1},
        {"reason": "x", "record": "first"},
        {"reason": "x", "record": True},
        {"reason": "x", "record": 2**60},
        {"reason": "x", "changes": {}},
        [],
    ],
)
def test_a_body_that_is_none_is_refused_with_its_field(operator: Program, ended: str, body: object) -> None:
    answer = operator.post(f"/runs/{ended}/retry", body)
    assert answer.status_code == 400
    assert operator.get(f"/runs/{ended}").json()["retried_as"] is None


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 16, "١"])
def test_a_cursor_that_is_none_is_refused(operator: Program, ended: str, cursor: str) -> None:
    assert refusal(operator.get(f"/runs/{ended}/checkpoints?cursor={cursor}"))[0] == 400


@proves("R-SEC-2", part="a retry takes two scopes")
@pytest.mark.parametrize("lacking", [Scope.SUBMIT, Scope.OPERATE])
def test_a_key_needs_what_submits_and_what_operates(world: World, ended: str, lacking: Scope) -> None:
    held = (scope for scope in scopes_of((Role.OPERATOR,)) if scope is not lacking)
    who = narrow_program(world.id, Role.OPERATOR, *held)
    answer = who.post(f"/runs/{ended}/retry", {"reason": "Again."})
    assert refusal(answer) == (403, "scope-missing")
    assert lacking.value in answer.json()["detail"]


def test_another_tenants_run_is_not_there(world: World, operator: Program, ended: str) -> None:
    theirs = program(world.people.other_tenant.id, Role.ADMIN)
    assert refusal(theirs.post(f"/runs/{ended}/retry", {"reason": "Mine."})) == (404, "not-found")
    assert refusal(theirs.get(f"/runs/{ended}/checkpoints")) == (404, "not-found")
    assert operator.get(f"/runs/{ended}").json()["retried_as"] is None
