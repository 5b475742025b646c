"""What pages read of runs: lists, timelines, sentences, ledgers."""

from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.console.queries.dashboard import build_overview
from orchestrator.console.queries.run_contents import contents_of, facts_of, ledger_of, load_conversation
from orchestrator.console.queries.run_summary import effects_done, list_run_limits, standing_of
from orchestrator.console.queries.timeline import (
    load_timeline_changes,
    load_timeline_page,
    load_unfolded_timeline_page,
    row_at,
    search_timeline,
)
from orchestrator.runs.queries.run_list import Filters, filters_of, list_run_page, view_counts
from orchestrator.runs.queries.runs import state_now
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.proves import proves


@pytest.fixture
def world(house: House, company: Company) -> World:
    return make_world(house)


def refund(world: World, company: Company, *, whole: bool = False) -> UUID:
    with company_at(company.url):
        run = world.submit("support-refund", "Refund order A-1003", inputs={"order_id": "A-1003"})
        if whole:
            world.approve_all(run)
        else:
            world.drive(run)
    return run


@proves("R-UI-2", part="filters")
def test_each_filter_narrows_the_list(world: World, company: Company) -> None:
    run = refund(world, company)
    with tenant_transaction(world.id):
        for query in (
            {"status": "awaiting_gate"}, {"workflow": "support-refund"}, {"view": "needs"}, {"q": "A-1003"},
            {"q": str(run)[:20]}, {"tool": "orders.lookup"}, {"q": "refund ORDER"},
        ):  # fmt: skip
            assert [row.run.id for row in list_run_page(filters_of(query)).rows] == [run], query
        for query in (
            {"status": "queued"}, {"workflow": "tool-loop"}, {"view": "active"}, {"q": "A-9"},
            {"tool": "mail.send"},            {"cost__gt": "1"}, {"terminal_code": "SUCCESS"},
            {"created_after": (database_now() + timedelta(hours=1)).isoformat()},
        ):  # fmt: skip
            assert list_run_page(filters_of(query)).rows == (), query


def test_a_filter_that_says_nothing_is_named_and_left_out(world: World) -> None:
    assert filters_of({"status": "sleeping", "cost__gt": "NaN", "created_after": "today"}).faults == (
        "status", "created_after", "cost__gt",
    )  # fmt: skip


@pytest.mark.parametrize("amount", ["1e-20000", "1e-13", "-1", "1e9", "Infinity", "1e99999"])
def test_an_amount_that_nothing_costs_says_nothing(amount: str) -> None:
    assert filters_of({"cost__gt": amount}).faults == ("cost__gt",)


@pytest.mark.parametrize(
    ("amount", "said"),
    [("10e-13", "1E-12"), ("1E+8", "100000000"), ("0e99999", "0"), ("1.50", "1.5")],
)
def test_an_amount_is_told_as_it_is_kept(amount: str, said: str) -> None:
    assert filters_of({"cost__gt": amount}).query == f"cost__gt={said}"


def test_a_row_has_its_title_its_money_and_what_it_waits_for(world: World, company: Company) -> None:
    refund(world, company)
    with tenant_transaction(world.id):
        (row,) = list_run_page(Filters()).rows
    assert row.run.title == "Refund order A-1003"
    assert row.cost is not None
    assert row.cost.limit == Decimal(1)
    assert row.waiting is not None
    assert (row.waiting.tool, row.waiting.queue) == ("payments.refund", "finance")
    assert row.started_by == "the operator"


def test_pages_follow_one_another_without_a_gap(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.runs.queries.run_list.PAGE", 2)
    runs = [world.submit("tool-loop", f"Task {number}") for number in range(5)]
    seen: list[UUID] = []
    with tenant_transaction(world.id):
        page = list_run_page(Filters())
        while True:
            seen += [row.run.id for row in page.rows]
            assert page.count.number == 5
            if page.following is None:
                break
            page = list_run_page(Filters(), page.following)
        assert {name: str(number) for name, number in view_counts().items()} == {
            "needs": "0", "active": "5", "problems": "0", "all": "5",
        }  # fmt: skip
    assert seen == runs[::-1]


@proves("R-UI-3", part="timeline")
def test_the_timeline_of_a_refund_is_read_row_by_row(world: World, company: Company) -> None:
    run = world.run(refund(world, company, whole=True))
    with tenant_transaction(world.id):
        rows = load_timeline_page(run.id, run.event_seq).rows
        assert [shown.row.name for shown in rows if shown.row.words == "Tool call"] == [
            "orders.lookup", "policy.evaluate", "payments.refund", "mail.send",
        ]  # fmt: skip
        decided = [shown for shown in rows if shown.row.words == "Approval asked for"]
        assert [(shown.row.word, shown.who) for shown in decided] == [("approved", "the reviewer")] * 2
        assert len(load_unfolded_timeline_page(run.id, run.event_seq).rows) == run.event_seq
        call = row_at(run.id, decided[0].row.seq + 1)
        assert call is not None
        lookup = row_at(run.id, 20)
        assert lookup is not None
        contents = contents_of(run.id, lookup.events)
        assert "A-1003" in str(contents)


def test_a_timeline_that_grew_says_which_rows_came_and_which_changed(world: World, company: Company) -> None:
    run = refund(world, company)
    before = world.run(run).event_seq
    with company_at(company.url):
        world.approve_all(run)
    after = world.run(run)
    with tenant_transaction(world.id):
        whole = {shown.row.seq: shown for shown in load_timeline_page(run, after.event_seq).rows}
        news = load_timeline_changes(run, before, after.event_seq)
    assert (news.seq, news.more) == (after.event_seq, False)
    for shown in (*news.new, *news.changed):
        assert shown == whole[shown.row.seq]
    assert {shown.row.name for shown in news.changed} == {"payments.refund", "finance"}
    assert len(news.new) + len([seq for seq in whole if seq <= before]) == len(whole)


def test_the_timeline_is_searched_and_sorted_on_the_server(world: World, company: Company) -> None:
    run = world.run(refund(world, company, whole=True))
    with tenant_transaction(world.id):
        hits = search_timeline(run.id, run.event_seq, show="all", text="customer")
        assert {shown.row.words for shown in hits.rows} >= {"Answer observed"}
        assert search_timeline(run.id, run.event_seq, show="all", text="no such thing").rows == ()
        tools = search_timeline(run.id, run.event_seq, show="tools", text="").rows
        assert {shown.row.words for shown in tools} == {"Tool call"}
        assert len(search_timeline(run.id, run.event_seq, show="approvals", text="").rows) == 2
        assert (
            search_timeline(run.id, run.event_seq, show="model", text="").rows[0].row.words
            == "Model call · writer"
        )
        assert search_timeline(run.id, run.event_seq, show="problems", text="").rows == ()
        assert search_timeline(run.id, run.event_seq, show="money", text="").rows


@proves("R-UI-3", part="sentence")
def test_a_waiting_run_says_for_whom_since_when_and_what_then(world: World, company: Company) -> None:
    run = world.run(refund(world, company))
    with tenant_transaction(world.id):
        said = standing_of(run, state_now(run.id))
    assert said.what == "Waits for 2 people of the queue finance (0 agreed) to decide on payments.refund"
    assert said.since is not None
    assert said.until is not None
    assert said.then.startswith("the request expires")


def test_an_ended_run_says_what_to_do_next(world: World, company: Company) -> None:
    run = world.run(refund(world, company, whole=True))
    with tenant_transaction(world.id):
        said = standing_of(run, state_now(run.id))
        done = effects_done(run)
    assert said.what.startswith("Completed: every criterion holds")
    assert said.next == "Use the result."
    assert [(one.row.name, one.reversibility) for one in done] == [
        ("payments.refund", "irreversible"), ("mail.send", "irreversible"),
    ]  # fmt: skip


@proves("R-UI-3", part="ledger")
def test_the_ledger_sums_to_the_dial(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    with tenant_transaction(world.id):
        book = ledger_of(run)
        line = get_usage_lines(run)[Dimension.COST_USD]
        (cost,) = [dial.meter for dial in list_run_limits(run) if dial.label == "Cost"]
    assert (book.used, book.reserved) == (line.used, line.reserved) == (cost.used, cost.reserved)
    assert book.used > 0
    assert book.entries[-1].balance_used == 0
    assert book.entries[0].balance_used == book.used


def test_messages_have_their_voices_and_facts_their_evidence(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    with tenant_transaction(world.id):
        voices = [message.voice for message in load_conversation(run).messages]
        facts = facts_of(run, state_now(run))
    assert voices.count("agent") == 1
    assert {"system", "tool"} <= set(voices)
    assert [fact.name for fact in facts] == ["order", "policy", "refund", "mail"]
    assert all(fact.seq for fact in facts)


@proves("R-UI-1")
def test_the_overview_counts_what_its_lists_show(world: World, company: Company) -> None:
    refund(world, company)
    world.submit("tool-loop", "Another")
    with tenant_transaction(world.id):
        seen = build_overview(database_now())
        queued = list_run_page(filters_of({"status": "queued"})).count
        needs = list_run_page(filters_of({"view": "needs"})).count
    assert (seen.needs.requests.number, seen.now.waiting, seen.now.queued) == (1, needs, queued)
    assert sum(seen.now.hours) == 2
    assert not seen.fresh
