"""The doors of runs: lists and filters, one run and its ETag, wishes, trace, result, replay."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import orjson
import pytest

from orchestrator import bundled_content
from orchestrator.runs.actions.run_signals import cancel
from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.api.program import Program, pointers, refusal
from tests.factories.world import World
from tests.proves import proves

SUM = "How much is (12 + 30) * 2?"


def ids(answer: Any) -> list[str]:
    """The ids of a page."""
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


@pytest.fixture
def queued(world: World) -> UUID:
    """A run that no worker has touched."""
    return world.submit("tool-loop", SUM)


@pytest.fixture
def ended(world: World) -> UUID:
    """A run that ended well."""
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"
    return run


@proves("R-API-1", part="cursor pages")
def test_pages_give_every_run_once_newest_first(world: World, auditor: Program) -> None:
    made = [str(world.submit("tool-loop", SUM)) for _ in range(5)]
    found: list[str] = []
    where: str | None = "/runs?limit=2"
    sizes = []
    while where is not None:
        split = urlsplit(where)
        answer = auditor.get(split.path, dict(parse_qsl(split.query)))
        found += ids(answer)
        sizes.append(len(answer.json()["results"]))
        where = answer.json()["next"]
        assert set(answer.json()) == {"results", "next", "previous"}
    assert (found, sizes) == (made[::-1], [2, 2, 1])


@proves("R-API-1", part="pages stand while rows come")
def test_a_new_run_does_not_move_the_next_page(world: World, auditor: Program) -> None:
    made = [str(world.submit("tool-loop", SUM)) for _ in range(2)]
    following = auditor.get("/runs", {"limit": 1}).json()["next"]
    world.submit("tool-loop", SUM)
    assert ids(auditor.get(following)) == [made[0]]


@proves("R-API-2", part="filters of runs")
def test_each_filter_finds_its_own(world: World, auditor: Program) -> None:
    done, waiting = str(world.submit("tool-loop", SUM)), str(world.submit("support-refund", "Refund"))
    world.drive(UUID(done))
    later = world.run(UUID(waiting)).created_at
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({"status": "queued"}, [waiting]),
        ({"status": "completed"}, [done]),
        ({"terminal_code": "SUCCESS"}, [done]),
        ({"terminal_code": "TIMEOUT"}, []),
        ({"workflow": "support-refund"}, [waiting]),
        ({"workflow": "refund"}, []),
        ({"q": "REFUND"}, [waiting]),
        ({"q": done[-8:]}, [done]),
        ({"q": "%"}, []),
        ({"created_after": (later - timedelta(microseconds=1)).isoformat()}, [waiting]),
        ({"created_after": later.isoformat()}, []),
        ({"created_after": "2020-01-01T00:00:00Z", "status": "completed", "q": "tool"}, [done]),
    ]
    assert [ids(auditor.get("/runs", query)) for query, _ in cases] == [found for _, found in cases]


@proves("R-SEC-7", part="filters that are none")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("created_after", "yesterday"),
        ("created_after", "2026-13-01T00:00:00Z"),
        ("created_after", ""),
        ("status", "sleeping"),
        ("terminal_code", "success"),
        ("q", "x" * 201),
        ("workflow", "w" * 65),
        ("limit", "0"),
        ("limit", "many"),
    ],
)
def test_a_filter_that_is_none_is_400_and_named(auditor: Program, name: str, value: str) -> None:
    answer = auditor.get("/runs", {name: value})
    assert (refusal(answer), pointers(answer)) == ((400, "invalid-input"), [f"/{name}"])


@proves("R-API-2", part="one run")
def test_a_run_says_what_it_is_and_what_it_spent(auditor: Program, ended: UUID) -> None:
    said = auditor.get(f"/runs/{ended}").json()
    assert {name: said[name] for name in ("id", "status", "terminal_code", "node")} == {
        "id": str(ended), "status": "completed", "terminal_code": "SUCCESS", "node": "end-success",
    }  # fmt: skip
    assert "84" in str(said["result"])
    assert said["sentence"]
    assert int(said["usage"]["tool_calls"]) >= 2
    assert set(said["usage"]) == set(said["limits"]) == set(said["reserved"])
    assert all(isinstance(amount, str) for amount in said["usage"].values())
    assert set(said["reserved"].values()) == {"0"}
    assert {len(said["pins"][name]) for name in ("manifest", "pins", "graph", "goal")} == {64}


@proves("R-API-1", part="ETag on runs")
def test_an_etag_holds_until_the_run_moves(world: World, auditor: Program, queued: UUID) -> None:
    tag = auditor.get(f"/runs/{queued}")["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        same = auditor.get(f"/runs/{queued}", headers={"If-None-Match": known})
        assert (same.status_code, same.content, same["ETag"]) == (304, b"", tag)
    world.drive(queued)
    moved = auditor.get(f"/runs/{queued}", headers={"If-None-Match": tag})
    assert moved.status_code == 200
    assert moved["ETag"] != tag


@proves("R-API-1", part="an ETag changes with all that is shown")
def test_a_run_that_was_begun_again_is_not_as_it_was(world: World, operator: Program, queued: UUID) -> None:
    cancel(world.id, queued, by=world.people.operator.id, reason="Not now.")
    world.drive(queued)
    before = operator.get(f"/runs/{queued}")
    assert operator.post(f"/runs/{queued}/retry", {"reason": "Again.", "record": 0}).status_code == 202
    after = operator.get(f"/runs/{queued}", headers={"If-None-Match": before["ETag"]})
    assert (after.status_code, before.json()["retried_as"]) == (200, None)
    assert after.json()["retried_as"] is not None


@proves("R-API-2", part="cancel, pause, resume")
def test_wishes_are_taken_and_obeyed(world: World, operator: Program, queued: UUID) -> None:
    seen = []
    for wish in ("pause", "resume", "cancel"):
        answer = operator.post(f"/runs/{queued}/{wish}", {"reason": "because"})
        assert (answer.status_code, answer.json()["id"]) == (202, str(queued))
        if wish != "resume":
            seen.append(world.drive(queued).status)
    assert seen == ["paused", "cancelled"]


@proves("R-API-2", part="a run that is over")
def test_nothing_is_wished_of_a_run_that_is_over(operator: Program, ended: UUID) -> None:
    for wish in ("cancel", "pause", "resume"):
        assert refusal(operator.post(f"/runs/{ended}/{wish}")) == (409, "run-over")


@proves("R-SEC-7", part="wishes")
@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"reason": 5}, "/reason"), ({"reason": "x" * 501}, "/reason"), ({"why": ""}, "/why"), ([], "")],
)
def test_a_malformed_wish_is_refused(operator: Program, queued: UUID, body: Any, pointer: str) -> None:
    answer = operator.post(f"/runs/{queued}/pause", body)
    assert (refusal(answer)[0], pointers(answer)) == (400, [pointer])


@proves("R-API-1", part="Idempotency-Key on every POST")
def test_wishes_and_replays_are_once_per_key(operator: Program, queued: UUID) -> None:
    for act in ("pause", "resume", "replay", "cancel"):
        first, again = (operator.post(f"/runs/{queued}/{act}", once="k-1") for _ in range(2))
        assert (first.status_code, first.json()) == (again.status_code, again.json())
        assert "Idempotent-Replay" not in first
        assert again["Idempotent-Replay"] == "true"


@proves("R-API-2", part="events")
def test_events_come_in_order_from_where_one_asks(world: World, auditor: Program, ended: UUID) -> None:
    every = auditor.get(f"/runs/{ended}/events").json()["results"]
    seqs = [event["seq"] for event in every]
    assert seqs == list(range(seqs[0], seqs[0] + len(every)))
    assert [event["kind"] for event in every] == world.kinds(ended)
    assert set(every[0]) == {"seq", "at", "phase", "phase_name", "kind", "actor", "payload", "hash"}
    rest = auditor.get(f"/runs/{ended}/events", {"after": seqs[4]}).json()["results"]
    assert rest == every[5:]


def test_events_are_paged(monkeypatch: pytest.MonkeyPatch, auditor: Program, ended: UUID) -> None:
    every = auditor.get(f"/runs/{ended}/events").json()["results"]
    monkeypatch.setattr("orchestrator.api.runs.EVENTS_A_PAGE", 3)
    first = auditor.get(f"/runs/{ended}/events").json()
    second = auditor.get(first["next"]).json()
    assert first["results"] + second["results"] == every[:6]


@pytest.mark.parametrize("after", ["-1", "x", "1.5", str(2**53 + 1), ""])
def test_a_place_that_is_none_is_400(auditor: Program, queued: UUID, after: str) -> None:
    answer = auditor.get(f"/runs/{queued}/events", {"after": after})
    assert (refusal(answer)[0], pointers(answer)) == (400, ["/after"])


@proves("R-API-2", part="result")
def test_a_result_is_202_until_there_is_one(world: World, auditor: Program, queued: UUID) -> None:
    waiting = auditor.get(f"/runs/{queued}/result")
    assert (waiting.status_code, waiting.json()["status"]) == (202, "queued")
    world.drive(queued)
    there = auditor.get(f"/runs/{queued}/result")
    assert (there.status_code, there.json()["terminal_code"]) == (200, "SUCCESS")
    assert "84" in str(there.json())


@proves("R-API-2", part="typed stop")
def test_a_stopped_run_says_why(world: World, operator: Program, queued: UUID) -> None:
    operator.post(f"/runs/{queued}/cancel", {"reason": "Enough."})
    world.drive(queued)
    said = operator.get(f"/runs/{queued}/result").json()
    assert (said["status"], said["terminal_code"]) == ("cancelled", "USER_CANCEL")


@proves("R-API-2", part="trace")
def test_a_trace_is_lines_of_json(auditor: Program, ended: UUID) -> None:
    answer = auditor.get(f"/runs/{ended}/trace", headers={"Accept": "application/jsonl"})
    lines = [orjson.loads(line) for line in answer.content.splitlines()]
    assert answer["Content-Type"] == "application/jsonl"
    assert f"{ended}.jsonl" in answer["Content-Disposition"]
    assert len(lines) > 10


@proves("R-API-2", part="replay")
def test_a_replay_matches(auditor: Program, ended: UUID) -> None:
    report = auditor.post(f"/runs/{ended}/replay").json()
    assert (report["matches"], report["first_difference"]) == (True, None)
    assert report["records"] > 5


@proves("R-API-2", part="workflows and tools")
def test_the_catalogue_is_listed_and_shown(auditor: Program, world: World) -> None:
    workflows = auditor.get("/workflows").json()["results"]
    assert {row["slug"] for row in workflows} == set(bundled_content.load_bundled_workflows())
    assert auditor.get("/workflows/tool-loop").json()["document"]["entry"] == "intake"
    tools = {row["name"]: row for row in auditor.get("/tools").json()["results"]}
    assert tools["payments.refund"]["needs_approval"]
    assert not tools["calculator.evaluate"]["needs_approval"]
    shown = auditor.get("/tools/payments.refund").json()
    assert {name: shown[name] for name in tools["payments.refund"]} == tools["payments.refund"]
    assert shown["definition"]["name"] == "payments.refund"


def test_what_cannot_be_saved_changes_nothing(world: World, auditor: Program, queued: UUID) -> None:
    """Reading leaves a run as it was."""
    before = world.run(queued).version
    for path in ("", "/events", "/plan", "/result", "/trace"):
        assert auditor.get(f"/runs/{queued}{path}").status_code in {200, 202}
    assert auditor.post(f"/runs/{queued}/replay").status_code == 200
    with tenant_transaction(world.id):
        assert Run.objects.get(id=queued).version == before
