"""Related people at every door where something is decided: none of them takes the word of one for the run of
another, nor two related words for two (R-APPR-23, A8)."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from approvals.actions.undo import take_effect
from approvals.models import Request
from approvals.queries.assignment import who_may
from tenancy.actions import add_member, create_key
from tenancy.core.relations import TieKind
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.api.program import Program
from tests.doors.pages.browsers import words
from tests.doors.pages.people import at, text
from tests.doors.relation_pairs import PAIRS, Pair, is_retried, of_key, plain, tie
from tests.factories.approvals import Desk, open_desk
from tests.factories.undoing import let_undo, pass_time
from tests.proves import proves

SECRET = "correct horse battery staple"


@pytest.fixture
def desk(house: House, superuser: psycopg.Connection) -> Any:
    """The tenant's desk, without runs behind it."""
    with open_desk(house) as opened:
        opened.superuser = superuser
        yield opened


OF_PEOPLE = [name for name in PAIRS if "key" not in name and "maker" not in name and not is_retried(name)]


# -- doors: each says yes to a request, and gives the rule that refused it, or ""


def by_page(desk: Desk, pair: Pair, **more: Any) -> tuple[Request, str]:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, risk="network", has_amount=False)
    answer = at(pair.decider).post(
        f"/approvals/{request.id}", {"decision": "approve", "digest": request.packet_digest}, **more
    )
    assert answer.status_code in (200, 302, 403)
    return request, "refused" if answer.status_code == 403 else ""


def by_fragment(desk: Desk, pair: Pair) -> tuple[Request, str]:
    return by_page(desk, pair, headers={"HX-Request": "true", "Accept": "text/html"})


def by_api(desk: Desk, pair: Pair) -> tuple[Request, str]:
    request, program = desk.ask(submitter=pair.submitter, retrier=pair.retrier), Program(clear=pair.key.clear)
    shown = program.get(f"/approvals/{request.id}").json()["refusal"]
    answer = program.post(f"/approvals/{request.id}/decisions", {"decision": "approve"})
    rule = answer.json()["data"]["rule"] if answer.status_code == 403 else ""
    assert (shown["rule"] if shown else "") == rule
    return request, rule


def by_bulk_page(desk: Desk, pair: Pair) -> tuple[Request, str]:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, risk="network", has_amount=False)
    shown = {"one": f"{request.id}:{request.packet_digest}", "decision": "approve"}
    answer = at(pair.decider).post("/approvals/bulk", shown)
    assert answer.status_code == 200
    return request, "" if desk.again(request).status == "decided" else "refused"


def by_bulk_api(desk: Desk, pair: Pair) -> tuple[Request, str]:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, risk="network", has_amount=False)
    body = {
        "decision": "approve",
        "requests": [{"id": str(request.id), "packet_digest": request.packet_digest}],
    }
    (result,) = Program(clear=pair.key.clear).post("/approvals/decisions", body).json()["results"]
    assert result["error"] is None or result["error"]["code"] == "not-yours"
    return request, "refused" if result["error"] else ""


def by_edit(desk: Desk, pair: Pair) -> tuple[Request, str]:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier)
    body = {"decision": "edit", "arguments": {"order_id": "A-1", "amount": "10.00"}}
    answer = Program(clear=pair.key.clear).post(f"/approvals/{request.id}/decisions", body)
    return request, answer.json()["data"]["rule"] if answer.status_code == 403 else ""


def by_reconciliation(desk: Desk, pair: Pair) -> tuple[Request, str]:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, kind="reconciliation")
    answer = Program(clear=pair.key.clear).post(
        f"/approvals/{request.id}/decisions", {"decision": "happened"}
    )
    return request, answer.json()["data"]["rule"] if answer.status_code == 403 else ""


def by_claim(desk: Desk, pair: Pair) -> tuple[Request, str]:
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier)
    answer = Program(clear=pair.key.clear).post(f"/approvals/{request.id}/assignment", {"do": "claim"})
    with tenant_transaction(desk.id):
        offered = pair.decider.id in dict(who_may(request))
    assert offered == (answer.status_code == 200)
    return request, answer.json()["data"]["rule"] if answer.status_code == 403 else ""


Door = Callable[[Desk, Pair], tuple[Request, str]]
DOORS: dict[str, Door] = {
    "page": by_page, "fragment": by_fragment, "api": by_api, "bulk page": by_bulk_page,
    "bulk api": by_bulk_api, "edit": by_edit, "reconciliation": by_reconciliation, "claim": by_claim,
}  # fmt: skip


@proves("R-APPR-23", part="related people at every door")
@proves("A8", part="related people")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("relation", PAIRS)
def test_a_decision_by_a_related_person_is_refused_at_every_door(
    desk: Desk, superuser: psycopg.Connection, relation: str, door: str
) -> None:
    make, rule = PAIRS[relation]
    pair = make(desk, superuser)
    request, found = DOORS[door](desk, pair)
    assert found == (rule if found not in ("", "refused") or not rule else "refused")
    assert (desk.said(request) == []) is (bool(rule) or door == "claim")


@proves("R-APPR-23", part="the list offers what the doors take")
@pytest.mark.parametrize("relation", PAIRS)
def test_the_inbox_lists_as_mine_what_the_doors_take(
    desk: Desk, superuser: psycopg.Connection, relation: str
) -> None:
    make, rule = PAIRS[relation]
    pair = make(desk, superuser)
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier)
    browser = at(pair.decider)
    assert (str(request.id) in text(browser.get("/approvals"))) is not bool(rule)
    page = words(browser.get(f"/approvals/{request.id}"))
    assert ("You may not decide this." in page) is bool(rule)
    assert ("until an administrator confirms that person" in page) is (rule == "related")


@proves("R-APPR-23", part="a deferred yes")
@pytest.mark.parametrize("relation", ["gave a role", "saw the link"])
def test_a_deferred_yes_lapses_where_its_speaker_becomes_related(
    desk: Desk, superuser: psycopg.Connection, relation: str
) -> None:
    let_undo(desk.id, desk.house.people.admin)
    pair = plain(desk)
    request = desk.ask(submitter=pair.submitter, retrier=pair.retrier, risk="local_write", has_amount=False)
    assert desk.say(request, pair.decider).kept is not None
    if relation == "gave a role":
        add_member(desk.id, pair.decider.person, Role.CLIENT, by=pair.submitter.id)
    else:
        tie(desk, TieKind.LINK_SEEN, pair.submitter, pair.decider)
    pass_time(superuser, request)
    take_effect(desk.id, request.run_id)
    assert (desk.again(request).status, desk.said(request)) == ("pending", [])


@proves("R-APPR-5", part="related people are one in a quorum")
@pytest.mark.parametrize("relation", OF_PEOPLE)
def test_related_people_count_once_in_a_quorum(
    desk: Desk, superuser: psycopg.Connection, relation: str
) -> None:
    make, rule = PAIRS[relation]
    pair, first = make(desk, superuser), desk.house.people.operator
    request = desk.ask(submitter=first, quorum=2)
    add_member(desk.id, pair.submitter.person, Role.REVIEWER)
    assert desk.say(request, pair.submitter).status == "pending"
    program = Program(clear=pair.key.clear)
    shown = program.get(f"/approvals/{request.id}").json()["refusal"]
    assert (shown and shown["rule"]) == ("related_agreed" if rule else None)
    answer = program.post(f"/approvals/{request.id}/decisions", {"decision": "approve"})
    assert (answer.status_code, desk.again(request).status) == (
        (403, "pending") if rule else (200, "decided")
    )
    if rule:
        assert answer.json()["data"]["rule"] == "related_agreed"
        page = words(at(pair.decider).get(f"/approvals/{request.id}"))
        assert "You may not approve this." in page
        assert "You may still reject it." in page
        assert desk.say(request, desk.house.people.approver).outcome == "approve"


@proves("R-APPR-5", part="the maker of a key is one in a quorum")
def test_a_key_made_for_another_counts_with_its_maker_in_a_quorum(desk: Desk) -> None:
    maker, owner = desk.house.people.admin, desk.house.people.second_approver
    key = create_key(desk.id, Role.REVIEWER, owner=owner.person, by=maker.id)
    request = desk.ask(quorum=2)
    desk.say(request, maker)
    answer = Program(clear=key.clear).post(f"/approvals/{request.id}/decisions", {"decision": "approve"})
    assert (answer.status_code, answer.json()["data"]["rule"]) == (403, "related_agreed")
    assert desk.say(request, owner).outcome == "approve"


def test_a_related_person_may_still_reject_what_the_other_approved(desk: Desk) -> None:
    people = desk.house.people
    add_member(desk.id, people.second_approver.person, Role.CLIENT, by=people.approver.id)
    request = desk.ask(quorum=2)
    desk.say(request, people.approver)
    assert desk.say(request, people.second_approver, "reject").outcome == "reject"


@proves("R-APPR-5", part="questions are the submitter's")
def test_the_maker_of_a_key_answers_the_question_to_it_and_a_related_person_does_not(desk: Desk) -> None:
    people = desk.house.people
    key = of_key(desk, by=people.admin)
    add_member(desk.id, people.approver.person, Role.CLIENT, by=people.admin.id)
    schema = {"type": "string"}
    request = desk.ask(submitter=key, kind="clarification", answer_schema=schema)
    refused = at(people.approver).get(f"/approvals/{request.id}")
    assert "You may not decide this." in words(refused)
    assert desk.say(request, people.admin, "answer", answer="two").outcome == "answer"
