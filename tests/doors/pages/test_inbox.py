"""The inbox: what waits for whom, in which order, and that nobody sees another tenant's."""

import re
from datetime import timedelta
from decimal import Decimal
from time import sleep
from typing import Any

import pytest

from approvals.actions.assignment import AssignmentChange, update_assignment
from approvals.core.assignment import AssignmentAction
from approvals.core.policy import explain_decision_refusal
from approvals.models import Request
from approvals.queries.authority import build_decidable_filter
from approvals.queries.people import asked_of, decider_of
from approvals.views.fragments import inbox_fragments
from approvals.views.live_inbox import parse_followed_view, view_of
from tenancy.core.roles import Role, Scope
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership
from tenancy.queries import standing_of
from tests.conftest import House
from tests.doors.pages.browsers import browser, words
from tests.factories.approvals import ASKED, Desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.factories.world import World
from tests.proves import proves
from traces.live.feeds import Fragments

READ = (Scope.READ.value,)
# How often a page is looked at again; a transaction elsewhere ends within a test.
PATIENCE = 400
HOSTILE = "<script>alert(1)</script>\u202e\u200b" + "a" * 3_000
ANSWER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}


def listed(page: Any) -> list[str]:
    """The ids of the rows, in order."""
    return re.findall(r'id="item-([0-9a-f-]{36})"', page.content.decode())


def ids(*requests: Request) -> list[str]:
    """Their ids as texts."""
    return [str(request.id) for request in requests]


@proves("R-UI-4", part="list and packet")
def test_the_riskiest_and_nearest_comes_first_and_stands_open(desk: Desk) -> None:
    late, soon = (desk.ask(risk="network", expires_in=timedelta(minutes=m)) for m in (50, 5))
    worst = desk.ask(risk="destructive", expires_in=timedelta(hours=9))
    page = browser(desk.house.people.approver).get("/approvals")
    assert listed(page) == ids(worst, soon, late)
    assert f'id="card-{worst.id}"' in page.content.decode()
    opened = browser(desk.house.people.approver).get(f"/approvals?open={late.id}")
    assert f'id="card-{late.id}"' in opened.content.decode()


def test_each_tab_has_its_own(desk: Desk) -> None:
    people = desk.house.people
    open_, decided = desk.ask(), desk.ask()
    desk.say(decided, people.approver, "reject", reason="no")
    question = desk.ask(kind="clarification", answer_schema=ANSWER)
    voted = desk.ask(quorum=2)
    desk.say(voted, people.approver)

    def tab(name: str, who: Somebody) -> set[str]:
        return set(listed(browser(who).get("/approvals", {"tab": name})))

    assert tab("mine", people.approver) == set(ids(open_))
    assert tab("mine", people.second_approver) == set(ids(open_, voted))
    assert tab("mine", people.submitter) == set(ids(question))
    assert tab("mine", people.auditor) == set()
    for who in (people.approver, people.auditor):
        assert tab("open", who) == set(ids(open_, question, voted))
        assert tab("decided", who) == set(ids(decided))


def test_filters_narrow_the_list_and_can_be_taken_away(desk: Desk) -> None:
    network, worst = desk.ask(risk="network"), desk.ask()
    client = browser(desk.house.people.approver)
    assert listed(client.get("/approvals", {"risk": "network"})) == ids(network)
    assert listed(client.get("/approvals", {"risk": "nonsense"})) == ids(worst, network)
    assert set(listed(client.get("/approvals", {"tool": "payments.refund"}))) == set(ids(worst, network))
    nothing = client.get("/approvals", {"tool": "mail.send"})
    assert listed(nothing) == []
    assert "No request fits these filters" in words(nothing)
    assert 'href="/approvals?tab=mine"' in nothing.content.decode()


def test_requests_are_found_by_the_workflow_that_asks(company_world: World) -> None:
    run = company_world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
    company_world.drive(run)
    client = browser(company_world.people.approver)
    assert len(listed(client.get("/approvals", {"workflow": "support-refund"}))) == 1
    assert listed(client.get("/approvals", {"workflow": "tool-loop"})) == []


def test_pages_follow_each_other_without_a_gap(desk: Desk) -> None:
    asked = [desk.ask(expires_in=timedelta(minutes=1 + n)) for n in range(60)]
    client = browser(desk.house.people.approver)
    first = client.get("/approvals")
    more = re.findall(r'href="([^"]*cursor=[^"]*)"', first.content.decode())[0].replace("&amp;", "&")
    second = client.get(more)
    assert listed(first) + listed(second) == ids(*asked)
    assert client.get("/approvals", {"cursor": "nonsense"}).status_code == 400


def test_an_empty_inbox_says_what_was_done(desk: Desk) -> None:
    desk.say(desk.ask(), desk.house.people.second_approver)
    page = words(browser(desk.house.people.approver).get("/approvals"))
    assert "Nothing waits for you." in page
    assert "1 decided in the last 24 hours" in page


@proves("R-UI-11", part="forbidden")
def test_whoever_may_not_decide_is_told_which_role_and_who_gives_it(desk: Desk) -> None:
    page = words(browser(desk.house.people.auditor).get("/approvals"))
    assert "you need the role reviewer or admin, which an administrator of the tenant grants" in page
    alone = words(browser(desk.house.people.auditor).get(f"/approvals/{desk.ask().id}"))
    assert (
        "You may not decide this. The scope decide is missing. The roles reviewer and admin have it" in alone
    )


def test_a_row_says_why_it_is_not_this_reader_s(desk: Desk) -> None:
    who = make_somebody(desk.house.tenant, Role.REVIEWER)
    with tenant_transaction(desk.id):
        Membership.objects.filter(person=who.person).update(max_amount=Decimal(100))
    desk.ask()
    page = browser(who).get("/approvals", {"tab": "open"})
    assert "Not yours: your limit is 100" in words(page)
    assert listed(browser(who).get("/approvals")) == []


LIMITS: list[dict[str, Any]] = [
    {},
    {"queues": []},
    {"queues": ["finance"]},
    {"queues": ["support"]},
    {"max_amount": Decimal(150)},
    {"max_amount": Decimal("149.99")},
    {"max_risk": "network"},
    {"max_risk": "destructive"},
    {"max_risk": "nonsense"},
    {"queues": ["finance"], "max_amount": Decimal(10), "max_risk": "network"},
]


@proves("R-APPR-5", part="the list knows the rule")
def test_the_list_of_mine_is_just_what_the_rule_allows(desk: Desk) -> None:
    desk.ask()
    desk.ask(risk="network")
    desk.ask(risk="unheard-of")
    desk.ask(queue="support", has_amount=False)
    desk.ask(kind="reconciliation", readable=False)
    desk.ask(kind="clarification", answer_schema=ANSWER)
    readers = [desk.house.people.submitter, desk.house.people.auditor, desk.house.people.admin]
    for limits in LIMITS:
        readers.append(make_somebody(desk.house.tenant, Role.REVIEWER))
        with tenant_transaction(desk.id):
            Membership.objects.filter(person=readers[-1].person).update(**limits)
    for who in readers:
        standing = standing_of(desk.id, who.id)
        assert standing is not None
        with tenant_transaction(desk.id):
            decider = decider_of(standing)
            found = set(Request.objects.filter(build_decidable_filter(decider)).values_list("id", flat=True))
            allowed = {
                r.id for r in Request.objects.all() if explain_decision_refusal(asked_of(r), decider) is None
            }
        assert found == allowed, standing


@proves("R-SEC-1", part="the inbox's pages")
def test_another_tenant_s_request_is_like_a_missing_one(desk: Desk) -> None:
    request = desk.ask()
    stranger = browser(desk.house.people.stranger)
    theirs = stranger.get(f"/approvals/{request.id}")
    missing = stranger.get("/approvals/00000000-0000-7000-8000-000000000000")
    assert (theirs.status_code, missing.status_code) == (404, 404)
    assert words(theirs).replace(str(request.id), "") == words(missing).replace(
        "00000000-0000-7000-8000-000000000000", ""
    )
    assert stranger.post(f"/approvals/{request.id}", {"decision": "approve"}).status_code == 404
    assert stranger.post(f"/approvals/{request.id}/preview").status_code == 404
    assert stranger.get(f"/approvals?open={request.id}").status_code == 404
    assert listed(stranger.get("/approvals?tab=open")) == []


@proves("R-SEC-5", part="hostile text in a packet")
def test_hostile_text_is_shown_marked_and_never_run(desk: Desk) -> None:
    request = desk.ask(arguments={**ASKED, "note": HOSTILE, HOSTILE: HOSTILE})
    for where in ("/approvals", f"/approvals/{request.id}"):
        page = browser(desk.house.people.approver).get(where).content.decode()
        assert "<script>alert" not in page
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", page)
        assert "U+202E" in page
        assert "U+200B" in page
    assert "Show all" in page


def test_who_is_not_signed_in_is_sent_to_sign_in(house: House) -> None:
    somebody = browser(house.people.approver)
    somebody.logout()
    for path in ("/approvals", "/approvals/00000000-0000-7000-8000-000000000000"):
        answer = somebody.get(path)
        assert (answer.status_code, answer["Location"].startswith("/account/login/")) == (302, True)


@proves("R-APPR-9", part="live rows")
def test_a_follower_sees_a_new_request_and_who_decided_it(desk: Desk) -> None:
    who = desk.house.people.second_approver
    start = news(desk, who, "")
    request = desk.ask()
    new = news(desk, who, str(start.seq))
    assert 'data-append="arrivals"' in new.html
    assert f'id="item-{request.id}"' in new.html
    desk.say(request, desk.house.people.approver)
    after = news(desk, who, str(new.seq))
    assert f'id="request-{request.id}"' in after.html
    assert "the reviewer</bdi></b> approved" in after.html
    assert f'id="card-state-{request.id}" class="card-state" tabindex="-1" data-settled' in after.html
    assert "arrivals" not in after.html
    assert f'<li id="item-{request.id}" data-gone>' in after.html


def news(desk: Desk, who: Somebody, after: str, view: str = "tab=mine") -> Fragments:
    """What comes to the inbox that somebody has open."""
    return inbox_fragments(desk.id, after, READ, view_of(view, who.principal.id))


def came(found: Fragments) -> list[str]:
    """The requests that are said to be new."""
    part = found.html.partition('data-append="arrivals"')[2].partition("</ul>")[0]
    return re.findall(r'id="item-([0-9a-f-]{36})"', part)


def now_at(desk: Desk) -> str:
    """Where a page stands that is opened now."""
    with tenant_transaction(desk.id):
        return str(mark_now())


def after_all(desk: Desk, who: Somebody) -> str:
    """Where a page stands once it is told of nothing any more: while somebody's older transaction is open
    anywhere on the server, what was committed meanwhile is told once more."""
    for _ in range(PATIENCE):
        start = now_at(desk)
        if not came(news(desk, who, start, "tab=open")):
            return start
        sleep(0.05)
    raise AssertionError("somebody's transaction never ended")


@proves("R-APPR-9", part="only what belongs to the open list counts as new")
def test_only_what_fits_the_tab_and_the_filters_is_new(desk: Desk) -> None:
    people, start = desk.house.people, now_at(desk)
    worst, network = desk.ask(), desk.ask(risk="network")
    question = desk.ask(kind="clarification", answer_schema=ANSWER)
    views: dict[str, list[Request]] = {
        "tab=mine": [worst, network], "tab=mine&risk=network": [network], "tab=mine&tool=mail.send": [],
        "tab=mine&workflow=none": [], "tab=open": [worst, network, question], "tab=snoozed": [],
        "tab=decided": [], "kept": [],
    }  # fmt: skip
    for view, fits in views.items():
        assert sorted(came(news(desk, people.approver, start, view))) == sorted(ids(*fits)), view
    assert came(news(desk, people.auditor, start)) == []
    assert came(news(desk, people.submitter, start)) == ids(question)


@proves("R-APPR-9", part="what is said to an older request makes it no new one")
def test_a_remark_a_claim_or_a_vote_is_no_new_request(desk: Desk) -> None:
    people = desk.house.people
    old = desk.ask(quorum=2)
    start = after_all(desk, people.approver)
    update_assignment(
        desk.id,
        old.id,
        people.admin.principal.id,
        AssignmentChange(kind=AssignmentAction.COMMENT, text="look"),
    )
    update_assignment(
        desk.id, old.id, people.admin.principal.id, AssignmentChange(kind=AssignmentAction.CLAIM)
    )
    desk.say(old, people.admin)
    for view in ("tab=mine", "tab=open", "kept"):
        found = news(desk, people.approver, start, view)
        assert f'id="request-{old.id}"' in found.html
        assert came(found) == []
    desk.say(old, people.second_approver)
    assert came(news(desk, people.approver, start, "tab=decided")) == ids(old)


@proves("R-APPR-9", part="the counts follow")
def test_the_counts_of_the_tabs_and_of_the_navigation_follow_as_the_reader_s_own(desk: Desk) -> None:
    people, start = desk.house.people, now_at(desk)
    desk.ask()
    desk.ask(kind="clarification", answer_schema=ANSWER)
    for who, mine_, hidden in ((people.approver, 1, ""), (people.auditor, 0, " data-none")):
        said = news(desk, who, start, "kept").html
        assert f'id="count-mine"{hidden}>{mine_}<' in said
        assert 'id="count-open">2<' in said
        assert f'id="nav-pending"{hidden}><span class="unseen">waiting: </span>{mine_}<' in said


def test_a_page_follows_the_list_it_shows(desk: Desk) -> None:
    client = browser(desk.house.people.approver)
    for n in range(51):
        desk.ask(call=f"c{n}")
    shown = client.get("/approvals", {"tab": "open", "risk": "destructive"}).content.decode()
    assert 'data-view="tab=open&amp;risk=destructive"' in shown
    (more,) = re.findall(r'href="([^"]*cursor=[^"]*)"', shown)
    assert 'data-view="kept"' in client.get(more.replace("&amp;", "&")).content.decode()


@pytest.mark.parametrize("view", ["nothing", "tab=none", "x" * 500, 7, ["tab"]])
def test_a_view_that_is_none_of_ours_is_refused(desk: Desk, view: object) -> None:
    with pytest.raises(ValueError, match=r"no part of the inbox|bad query field"):
        view_of(view, desk.house.people.approver.principal.id)


def test_nobody_reads_as_somebody_else(desk: Desk) -> None:
    other = desk.house.people.approver.principal.id
    asked = view_of(f"tab=mine&reader={other}", desk.house.people.auditor.principal.id)
    assert parse_followed_view(asked).reader == desk.house.people.auditor.principal.id


@pytest.mark.parametrize("count", [1, 30])
def test_a_page_asks_the_database_a_fixed_number_of_times(
    desk: Desk, count: int, django_assert_max_num_queries: Any
) -> None:
    for _ in range(count):
        desk.say(desk.ask(quorum=2), desk.house.people.second_approver)
    client = browser(desk.house.people.approver)
    # The first page of a session notes that it is there.
    client.get("/approvals")
    with django_assert_max_num_queries(82):
        client.get("/approvals")
