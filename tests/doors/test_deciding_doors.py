"""A walk over every door about requests, runs and proposals with every pair of relations (R-APPR-23, A8)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock
from uuid import UUID

import psycopg
import pytest

from approvals import ports
from approvals.actions.undo import undo_deferred_approval
from approvals.core.errors import NotYours
from approvals.ports import EditJudgement
from orchestrator.core.domain.effects import SentChange
from orchestrator.core.engine.late_reconciliation import DoubtfulChange
from orchestrator.core.policy.rules import Policy
from orchestrator.decisions.actions import late_reconciliation
from orchestrator.policies.actions.policy_versions import ChangeAuthor, change_policy
from orchestrator.tools.actions.change_requests import DONE
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tools import tool_now
from tenancy.actions import add_member, create_key
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.doors import some_memory, some_review
from tests.doors.api.program import Program
from tests.doors.pages.people import at
from tests.doors.relation_pairs import PAIRS, Pair, is_retried
from tests.factories.approvals import Desk, open_desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.factories.undoing import let_undo
from tests.factories.world import World, make_world
from tests.proves import proves

WHY = {"reason": "Looked at."}


@pytest.fixture
def desk(house: House, superuser: psycopg.Connection) -> Iterator[Desk]:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        opened.superuser = superuser
        yield opened


# -- requests


def refused(answer: Any) -> str:
    """The rule that refused, "refused" where the page does not say which, or ""."""
    if answer.status_code != 403:
        return ""
    data = answer.json().get("data", {}) if "json" in answer["Content-Type"] else {}
    return str(data.get("rule", "refused"))


def by_extension(desk: Desk, pair: Pair) -> str:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, kind="budget", has_amount=False)
    path, body = f"/approvals/{request.id}/decisions", {"decision": "extend", "amounts": {"model_turns": "1"}}
    extended = EditJudgement(b'{"model_turns":"1"}', action_digest="e" * 64)
    with mock.patch.object(ports, "_EXTENDS", [lambda *_: extended]):
        answer = Program(clear=pair.key.clear).post(path, body)
    assert answer.status_code in (200, 403)
    assert bool(desk.said(request)) is (answer.status_code == 200)
    return refused(answer)


def by_assignment(desk: Desk, pair: Pair) -> str:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier)
    manager = create_key(desk.id, Role.ADMIN, owner=desk.house.people.admin.person)
    path, body = f"/approvals/{request.id}/assignment", {"do": "assign", "to": str(pair.decider.id)}
    answer = Program(clear=manager.clear).post(path, body)
    assert answer.status_code in (200, 422)
    return "refused" if answer.status_code == 422 else ""


def by_reveal(desk: Desk, pair: Pair) -> str:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier)
    answer = Program(clear=pair.key.clear).post(f"/approvals/{request.id}/reveal", {"pointer": "/order_id"})
    # Nothing is sealed there: whoever may see it is told so.
    assert answer.status_code in (403, 422)
    return refused(answer)


def posted(desk: Desk, pair: Pair, **form: str) -> str:
    """What a request's page answers to a form."""
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, risk="network", has_amount=False)
    answer = at(pair.decider).post(f"/approvals/{request.id}", {"digest": request.packet_digest, **form})
    assert desk.said(request) == []
    return refused(answer)


REQUESTS: dict[str, Callable[[Desk, Pair], str]] = {
    "extension": by_extension,
    "assignment": by_assignment,
    "reveal": by_reveal,
    "edit page": lambda desk, pair: posted(desk, pair, decision="edit", **{"e:/amount": "10.00"}),
    "claim page": lambda desk, pair: posted(desk, pair, do="claim"),
    "reveal page": lambda desk, pair: posted(desk, pair, do="reveal", pointer="/order_id"),
}


@proves("R-APPR-23", part="every door of a request, every pair of relations")
@proves("A8", part="every door of a request")
@pytest.mark.parametrize("door", REQUESTS)
@pytest.mark.parametrize("relation", PAIRS)
def test_request_of_a_related_person_is_decided_at_no_door(
    desk: Desk, superuser: psycopg.Connection, relation: str, door: str
) -> None:
    make, rule = PAIRS[relation]
    found = REQUESTS[door](desk, make(desk, superuser))
    assert found == rule or (found == "refused" and rule), (door, relation)


@proves("R-APPR-23", part="questions, every pair of relations")
@pytest.mark.parametrize("relation", PAIRS)
def test_question_is_answered_by_the_people_behind_its_submitter_alone(
    desk: Desk, superuser: psycopg.Connection, relation: str
) -> None:
    make, rule = PAIRS[relation]
    pair = make(desk, superuser)
    request = desk.ask(submitter=pair.submitter, kind="clarification", answer_schema={"type": "string"})
    body = {"decision": "answer", "answer": "two"}
    answer = Program(clear=pair.key.clear).post(f"/approvals/{request.id}/decisions", body)
    theirs = rule == "own_run" and not is_retried(relation)
    assert refused(answer) == ("" if theirs else "submitter_answers")
    assert bool(desk.said(request)) is theirs


@proves("R-APPR-23", part="a yes is taken back by its speaker, every pair of relations")
@pytest.mark.parametrize("relation", PAIRS)
def test_yes_of_somebody_else_is_not_taken_back_by_a_reviewer(
    desk: Desk, superuser: psycopg.Connection, relation: str
) -> None:
    let_undo(desk.id, desk.house.people.admin)
    pair = PAIRS[relation][0](desk, superuser)
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, risk="local_write", has_amount=False)
    assert desk.say(request, desk.house.people.approver).kept is not None
    answer = Program(clear=pair.key.clear).post(f"/approvals/{request.id}/undo")
    assert refused(answer) == "undo"
    with pytest.raises(NotYours):
        undo_deferred_approval(desk.id, request.id, pair.decider.id)


# -- runs: what they propose to remember, what they ask to look at, and what a safety rule closed


def as_admin(desk: Desk, pair: Pair) -> Program:
    """A key of the decider, who administers by the operator's word."""
    add_member(desk.id, pair.decider.person, Role.ADMIN)
    return Program(clear=create_key(desk.id, Role.ADMIN, owner=pair.decider.person).clear)


def run_of(desk: Desk, pair: Pair, superuser: psycopg.Connection) -> UUID:
    """A run of the pair's submitter that a safety rule has closed; where they have a retrier, the run that
    this one had begun after it."""
    world = World(house=desk.house)
    before = world.submit("tool-loop", "How much is 1 + 1?", by=pair.submitter)
    run = world.submit("tool-loop", "How much is 1 + 1?", by=pair.submitter) if pair.retrier else before
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE orchestrator_run SET status = 'failed', terminal_code = 'UNSAFE_DETECTION',"
            " finished_at = now() WHERE id = %s",
            [run],
        )
        if pair.retrier:
            superuser.execute(
                "UPDATE orchestrator_run SET retry_of_id = %s, retry_record = 0, retried_by = %s"
                " WHERE id = %s",
                [before, pair.retrier.id, run],
            )
    return run


def by_memory(desk: Desk, pair: Pair, run: UUID) -> str:
    answer = as_admin(desk, pair).post(f"/memory/{some_memory(desk.id, run)}/keep", WHY)
    # What rests on no fact is kept by nobody: whoever may judge it is told so.
    assert answer.json()["code"] in ("not-independent", "memory-refused")
    return refused(answer)


def by_review(desk: Desk, pair: Pair, run: UUID) -> str:
    path, body = f"/reviews/{some_review(desk.id, run)}/answer", {"finding": "confirmed", "note": "So."}
    return refused(Program(clear=pair.key.clear).post(path, body))


def by_taking(desk: Desk, pair: Pair, run: UUID) -> str:
    path = f"/reviews/{some_review(desk.id, run)}/take"
    return refused(Program(clear=pair.key.clear).post(path))


def by_review_page(desk: Desk, pair: Pair, run: UUID) -> str:
    form = {"do": "answer", "finding": "confirmed", "note": "So."}
    return refused(at(pair.decider).post(f"/reviews/{some_review(desk.id, run)}", form))


def by_safety_page(desk: Desk, pair: Pair, run: UUID) -> str:
    as_admin(desk, pair)
    return refused(at(pair.decider).post(f"/system/reviewed/{run}", {"finding": "Fine."}))


EFFECT = SentChange(
    effect="e" * 32, call="one", tool="clock.now", key="k" * 32, arguments="a" * 64, argument_digest="d" * 64
)


def with_doubt() -> AbstractContextManager[object]:
    """A change in doubt of whichever run is asked about."""
    return mock.patch.object(
        late_reconciliation, "doubts_of", return_value=(DoubtfulChange(change=EFFECT, why="in_doubt"),)
    )


def by_effect(desk: Desk, pair: Pair, run: UUID) -> str:
    body = {"effect": EFFECT.effect, "verdict": "happened", **WHY}
    with with_doubt():
        answer = Program(clear=pair.key.clear).post(f"/runs/{run}/effects/reconcile", body)
    assert answer.status_code in (202, 403)
    return refused(answer)


def by_effect_look_up(desk: Desk, pair: Pair, run: UUID) -> str:
    with with_doubt():
        answer = Program(clear=pair.key.clear).post(f"/runs/{run}/effects/look-up", {"effect": EFFECT.effect})
    # Its tool declares no look-up: whoever may have it looked up is told so.
    assert answer.json()["code"] in ("not-yours", "no-look-up")
    return refused(answer)


def by_effect_page(desk: Desk, pair: Pair, run: UUID) -> str:
    form = {"effect": EFFECT.effect, "verdict": "happened", **WHY}
    with with_doubt():
        answer = at(pair.decider).post(f"/runs/{run}/effects", form)
    assert answer.status_code in (302, 403)
    return refused(answer)


RUNS: dict[str, Callable[[Desk, Pair, UUID], str]] = {
    "effect": by_effect, "effect look-up": by_effect_look_up, "effect page": by_effect_page,
    "memory": by_memory, "review": by_review, "review taken": by_taking, "review page": by_review_page,
    "safety page": by_safety_page,
}  # fmt: skip


@proves("R-APPR-23", part="every door about a run, every pair of relations")
@proves("A8", part="every door about a run")
@pytest.mark.parametrize("door", RUNS)
@pytest.mark.parametrize("relation", PAIRS)
def test_run_of_a_related_person_is_judged_at_no_door(
    desk: Desk, superuser: psycopg.Connection, relation: str, door: str
) -> None:
    make_world(desk.house)
    make, rule = PAIRS[relation]
    pair = make(desk, superuser)
    found = RUNS[door](desk, pair, run_of(desk, pair, superuser))
    assert bool(found) is bool(rule), (door, relation, found)


@proves("R-APPR-23", part="one administrator alone")
def test_run_of_somebody_related_is_judged_by_the_only_administrator_and_that_is_audited(
    desk: Desk, superuser: psycopg.Connection
) -> None:
    """Their own run they never judge: test_system_circuits.py."""
    make_world(desk.house)
    admin, friend = desk.house.people.admin, desk.house.people.operator
    add_member(desk.id, friend.person, Role.CLIENT, by=admin.id)
    pair = Pair(friend, admin, create_key(desk.id, Role.ADMIN, owner=admin.person))
    run = run_of(desk, pair, superuser)
    assert at(admin).post(f"/system/reviewed/{run}", {"finding": "Fine."}).status_code == 302
    overview = at(admin).get("/").content.decode()
    assert "decided about" in overview
    make_somebody(desk.house.tenant, Role.ADMIN)
    again = at(admin).post(f"/system/reviewed/{run_of(desk, pair, superuser)}", {"finding": "Fine."})
    assert again.status_code == 403


# -- proposals: what guards less waits for a second administrator


def a_proposal(desk: Desk, asker: Somebody, kind: str) -> UUID:
    """What somebody asked for, and waits."""
    body = {"change": {"rate_per_minute": 9}} if kind == "change" else {}
    with tenant_transaction(desk.id):
        return ToolProposal.objects.create(
            tenant_id=desk.id, kind=kind, tool="clock.now", body=body, weaker=["It is."], reason="Too slow",
            tag=tool_now(desk.id, "clock.now").tag, by=asker.id, owner=asker.person.id, at=database_now(),
        ).id  # fmt: skip


def by_tool_proposal(desk: Desk, pair: Pair) -> str:
    path = f"/change-requests/{a_proposal(desk, pair.submitter, 'change')}/agree"
    answer = as_admin(desk, pair).post(path, WHY)
    assert answer.status_code in (200, 403)
    return refused(answer)


def by_tool_proposal_page(desk: Desk, pair: Pair) -> str:
    as_admin(desk, pair)
    waiting = a_proposal(desk, pair.submitter, "change")
    answer = at(pair.decider).post("/change-requests", {"proposal": str(waiting), "agree": "yes", **WHY})
    assert answer.status_code in (302, 403)
    return refused(answer)


def a_policy(desk: Desk, asker: Somebody) -> UUID:
    """A weaker policy that waits."""
    who = ChangeAuthor(principal=asker.id, owner=asker.person.id)
    waiting = change_policy(desk.id, Policy(), expected=None, who=who, reason="Less of it").proposal
    assert waiting is not None
    return waiting.id


def by_policy(desk: Desk, pair: Pair) -> str:
    answer = as_admin(desk, pair).post(f"/policy/proposals/{a_policy(desk, pair.submitter)}/agree", WHY)
    assert answer.status_code in (200, 403)
    return refused(answer)


def by_policy_page(desk: Desk, pair: Pair) -> str:
    as_admin(desk, pair)
    form = {"proposal": str(a_policy(desk, pair.submitter)), "agree": "yes", **WHY}
    answer = at(pair.decider).post("/policy", form)
    assert answer.status_code in (302, 403)
    return refused(answer)


PROPOSALS: dict[str, Callable[[Desk, Pair], str]] = {
    "tool proposal": by_tool_proposal, "tool proposal page": by_tool_proposal_page, "policy": by_policy,
    "policy page": by_policy_page,
}  # fmt: skip
BETWEEN_PEOPLE = [name for name in PAIRS if not is_retried(name)]


@proves("R-APPR-23", part="every door of a proposal, every pair of relations")
@proves("A8", part="every door of a proposal")
@pytest.mark.parametrize("door", PROPOSALS)
@pytest.mark.parametrize("relation", BETWEEN_PEOPLE)
def test_proposal_of_a_related_person_is_agreed_to_at_no_door(
    desk: Desk, superuser: psycopg.Connection, relation: str, door: str
) -> None:
    make_world(desk.house)
    make, rule = PAIRS[relation]
    assert bool(PROPOSALS[door](desk, make(desk, superuser))) is bool(rule), (door, relation)


@proves("R-APPR-23", part="every kind of proposal")
@pytest.mark.parametrize("kind", DONE)
def test_proposal_of_every_kind_asks_the_relation_before_anything_else(
    desk: Desk, superuser: psycopg.Connection, kind: str
) -> None:
    make_world(desk.house)
    for relation in ("through a third", "made the key"):
        make, rule = PAIRS[relation]
        pair = make(desk, superuser)
        waiting = a_proposal(desk, pair.submitter, kind)
        answer = as_admin(desk, pair).post(f"/change-requests/{waiting}/agree", WHY)
        code = "own-proposal" if rule == "own_run" else "brought-along"
        assert (answer.status_code, answer.json()["code"]) == (403, code)
        with tenant_transaction(desk.id):
            ToolProposal.objects.filter(id=waiting).update(status="outdated", settled_at=database_now())
