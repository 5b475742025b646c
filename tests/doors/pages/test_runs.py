"""The list of runs and what can be asked of many (R-UI-2)."""

from base64 import urlsafe_b64encode
from json import dumps
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestrator.console.views.fragments import list_fragments
from orchestrator.runs.models.run import RunSignal
from tenancy.db.change_cursor import mark_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import HOSTILE, at, join_lines, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World
from tests.proves import proves


@proves("R-UI-2", part="page")
def test_every_role_that_reads_sees_the_runs(world: World, company: Company) -> None:
    run = refund(world, company)
    for who in (world.people.submitter, world.people.approver, world.people.auditor, world.people.admin):
        page = text(at(who).get("/runs"))
        assert str(run) in page
        assert "Refund order A-1001" in page
        assert "Needs approval" in page
        assert "payments.refund" in page


def test_who_may_not_operate_is_offered_no_bulk(world: World, company: Company) -> None:
    refund(world, company)
    assert 'id="bulk"' not in text(at(world.people.auditor).get("/runs"))
    assert 'value="pause"' in text(at(world.people.operator).get("/runs"))


def test_a_stranger_sees_none_of_them(world: World, company: Company) -> None:
    run = refund(world, company)
    assert str(run) not in text(at(world.people.stranger).get("/runs"))


def test_filters_live_in_the_address_and_can_be_taken_away(world: World, company: Company) -> None:
    run = refund(world, company)
    who = at(world.people.operator)
    page = text(who.get("/runs", {"status": "awaiting_gate", "tool": "orders.lookup"}))
    assert str(run) in page
    assert 'href="/runs?tool=orders.lookup"' in page
    assert 'href="/runs?status=awaiting_gate"' in page
    nothing = text(who.get("/runs", {"workflow": "tool-loop"}))
    assert "No run matches" in nothing
    assert str(run) not in nothing
    assert "status, cost__gt" in text(who.get("/runs", {"status": "asleep", "cost__gt": "dear"}))


@proves("W2", part="offsets that PostgreSQL refuses, in the address of a page")
@pytest.mark.parametrize("moment", ["2026-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"])
def test_a_moment_in_any_offset_is_no_fault_of_ours(world: World, moment: str) -> None:
    admin, first = at(world.people.admin), str(UUID(int=1))
    for path, said in {
        "/runs": f"{moment} {first}",
        "/approvals": dumps([0, moment, first]),
        "/reviews": dumps([0, moment, first]),
        "/tenant/audit": dumps([moment, first]),
    }.items():
        cursor = urlsafe_b64encode(said.encode()).decode().rstrip("=")
        assert admin.get(path, {"cursor": cursor}).status_code in (200, 400), path
    for name in ("created_after", "finished_after"):
        assert admin.get("/runs", {name: moment}).status_code == 200


def test_a_cursor_of_nobodys_shows_the_newest(world: World, company: Company) -> None:
    run = refund(world, company)
    assert str(run) in text(at(world.people.operator).get("/runs", {"cursor": "nonsense!"}))


def test_an_empty_list_says_what_will_be_there(world: World) -> None:
    page = text(at(world.people.operator).get("/runs"))
    assert "No run yet" in page
    assert 'href="/new"' in page


def test_hostile_text_is_shown_and_does_nothing(world: World) -> None:
    world.submit("tool-loop", HOSTILE)
    page = text(at(world.people.operator).get("/runs", {"q": "<script>"}))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "U+202E" in page
    assert "\u202e" not in page


def test_the_list_asks_the_database_no_more_for_more_runs(world: World) -> None:
    who = at(world.people.operator)
    world.submit("tool-loop", "One")
    # The first page of a session notes that it is there.
    who.get("/runs")
    with CaptureQueriesContext(connection) as one:
        who.get("/runs")
    for number in range(6):
        world.submit("tool-loop", f"Another {number}")
    with CaptureQueriesContext(connection) as seven:
        who.get("/runs")
    assert len(seven) == len(one) <= 40


@proves("R-UI-2", part="bulk")
def test_a_bulk_wish_says_first_what_it_will_do(world: World, company: Company) -> None:
    live, over = refund(world, company), refund(world, company, whole=True)
    who = at(world.people.operator)
    asked = {"wish": "cancel", "run": [str(live), str(over)]}
    page = text(who.post("/runs/bulk", asked))
    assert "Cancel 1 run?" in page
    assert "1 selected run is left alone" in page
    assert _signals(world, live) == 0
    missing = who.post("/runs/bulk", {**asked, "sure": "1"})
    assert (missing.status_code, _signals(world, live)) == (422, 0)
    done = text(who.post("/runs/bulk", {**asked, "sure": "1", "reason": "wrong order"}))
    assert "Cancel asked for" in done
    assert "Left alone" in done
    assert world.drive(live).status == "cancelled"


def test_bulk_is_refused_without_the_scope_and_blind_to_others(world: World, company: Company) -> None:
    run = refund(world, company)
    asked = {"wish": "pause", "run": [str(run)], "sure": "1", "reason": "no"}
    assert at(world.people.auditor).post("/runs/bulk", asked).status_code == 403
    assert at(world.people.stranger).post("/runs/bulk", asked).status_code == 403
    assert _signals(world, run) == 0
    unknown = {"wish": "pause", "run": [str(fresh_id()), "nonsense"], "sure": "1", "reason": "no"}
    assert "No run was selected" in text(at(world.people.operator).post("/runs/bulk", unknown))


@proves("R-SESS-11", part="list fragments")
def test_what_changed_in_the_list_comes_as_the_rows_of_the_page(world: World, company: Company) -> None:
    run = refund(world, company)
    with tenant_transaction(world.id):
        before = str(mark_now())
    # Rows are states and may come twice while an older transaction is open: nothing is said of those.
    world.decide(world.open_requests(run)[0], world.people.approver, "reject", reason="no")
    world.drive(run)
    news = list_fragments(world.id, before)
    page = text(at(world.people.operator).get("/runs"))
    assert f'id="run-{run}"' in news.html
    assert 'id="view-count-needs"' in news.html
    row = (
        join_lines(news.html)
        .split(f'id="run-{run}"')[1]
        .split('role="row"')[0]
        .split("<div data-prepend")[0]
        .rstrip()
    )
    assert row in page
    assert not news.more


@pytest.mark.parametrize("path", ["/runs", "/new"])
def test_who_is_not_signed_in_is_sent_to_sign_in(world: World, path: str) -> None:
    answer = Client().get(path, headers={"accept": "text/html"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/account/login/")


def _signals(world: World, run: UUID) -> int:
    with tenant_transaction(world.id):
        return RunSignal.objects.filter(run_id=run, kind__in=("pause", "cancel")).count()
