"""One run's page: its sentence, its dials, its tabs, what can be asked of it (R-UI-3)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from uuid import UUID

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.console.queries.timeline import load_timeline_page, with_names
from orchestrator.console.views.fragments import run_fragments
from orchestrator.console.views.tabs import TABS
from orchestrator.core.readmodel.timeline import EventLabel, bar_of, fold_events
from orchestrator.runs.models.run import Run
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import HOSTILE, alike, at, join_lines, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from tests.proves import proves
from traces.live.feeds import extract_sequence


@proves("R-UI-3", part="page")
def test_a_waiting_run_says_why_and_leads_to_the_decision(world: World, company: Company) -> None:
    run = refund(world, company)
    page = text(at(world.people.approver).get(f"/runs/{run}"))
    assert "Needs approval" in page
    assert "to decide on payments.refund" in page
    (request,) = world.open_requests(run)
    assert f"/approvals/{request.id}" in page
    assert f'data-live="/ws/runs/{run}"' in page
    assert f'data-seq="{world.run(run).event_seq}.' in page


@pytest.mark.slow
def test_every_tab_is_drawn_for_every_reader(world: World, company: Company) -> None:
    waiting, ended = refund(world, company), refund(world, company, whole=True)
    for who in (world.people.operator, world.people.approver, world.people.auditor, world.people.admin):
        reader = at(who)
        for run, tab in product((waiting, ended), TABS):
            answer = reader.get(f"/runs/{run}", {"tab": tab})
            assert answer.status_code == 200, (run, tab)
            assert 'aria-current="page"' in text(answer), (run, tab)


@pytest.mark.parametrize("rest", ["", "/actions?wish=cancel", "/rows/1", "/trace.jsonl"])
def test_another_tenants_run_looks_like_a_missing_one(world: World, company: Company, rest: str) -> None:
    run = refund(world, company)
    who = at(world.people.stranger)
    nobodys = fresh_id()
    theirs, none = who.get(f"/runs/{run}{rest}"), who.get(f"/runs/{nobodys}{rest}")
    if "actions" in rest:
        assert theirs.status_code == none.status_code == 403
        return
    assert theirs.status_code == none.status_code == 404
    assert alike(theirs, run) == alike(none, nobodys)


@proves("R-UI-3", part="dials")
def test_the_dial_is_the_ledger_to_the_cent(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    with tenant_transaction(world.id):
        used = get_usage_lines(run)[Dimension.COST_USD].used
    assert used > Decimal(0)
    page = text(at(world.people.operator).get(f"/runs/{run}", {"tab": "ledger"}))
    assert "add up to the meter" in page
    assert f'value="{used.normalize():f}' in page


def test_the_trace_is_folded_and_each_row_opens(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    who = at(world.people.operator)
    page = text(who.get(f"/runs/{run}"))
    assert page.count('<b><bdi class="hostile">payments.refund') == 1
    opened = text(who.get(f"/runs/{run}/rows/12"))
    assert "A-1001" in opened
    assert "Call checked" in opened
    fragment = who.get(f"/runs/{run}/rows/12", headers={"HX-Request": "true"})
    assert "<html" not in text(fragment)
    assert who.get(f"/runs/{run}/rows/99999").status_code in (200, 404)


def test_the_timeline_is_narrowed_by_the_address(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    who = at(world.people.operator)
    for query in (
        {"show": "model"},
        {"show": "problems"},
        {"q": "A-1001"},
        {"rows": "each"},
        {"before": "40"},
    ):
        answer = who.get(f"/runs/{run}", query)
        assert answer.status_code == 200
        assert 'id="timeline-rows"' not in text(answer)
    assert "Nothing of that sort" in text(who.get(f"/runs/{run}", {"q": "no such words"}))


@proves("R-UI-3", part="model calls, tool calls and waits as bars")
def test_a_model_call_a_tool_call_and_a_wait_have_bars_as_long_as_they_took(
    world: World, company: Company
) -> None:
    run = refund(world, company, whole=True)
    who = at(world.people.operator)
    page = text(who.get(f"/runs/{run}"))
    drawn = {
        int(seq): bar for bar, seq in re.findall(r'<li class="line mood-\w+([^"]*)" id="row-(\d+)"', page)
    }
    with tenant_transaction(world.id):
        rows = {one.row.seq: one for one in load_timeline_page(run, world.run(run).event_seq).rows}
    timed = {seq: one for seq, one in rows.items() if one.took is not None}
    assert {seq: bar for seq, bar in drawn.items() if bar} == {
        seq: f" bar bar-{one.row.voice} bar-{bar_of(one.took or 0)}" for seq, one in timed.items()
    }
    assert {"model", "tool", "people"} <= {one.row.voice for one in timed.values()}
    assert {one.row.words for one in rows.values() if one not in timed.values()} >= {
        "Run started",
        "Run ended",
    }
    assert page.count("Bars: duration, log scale") == 1
    each = text(who.get(f"/runs/{run}", {"rows": "each"}))
    assert "Bars: " not in each
    assert " bar bar-" not in each


@proves("R-UI-3", part="what was idle is a bar")
def test_a_stretch_in_which_nothing_happened_has_a_bar(world: World) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = with_names(
        fold_events(
            [
                EventLabel(1, start, "run_paused", "interlock", {}),
                EventLabel(2, start + timedelta(seconds=1_000), "output_drafted", "interlock", {}),
            ]
        )
    )
    said = [
        render_to_string("orchestrator/_row.html", {"shown": one, "run": Run(id=fresh_id())}) for one in rows
    ]
    assert [re.findall(r"\bbar-\w+", one) for one in said] == [[], ["bar-20"]]
    assert 'class="idle muted bar-20" id="idle-2"' in said[1]


def test_hostile_text_is_shown_in_every_tab_and_does_nothing(world: World, company: Company) -> None:
    run = refund(world, company, objective=HOSTILE, reason=HOSTILE[:400])
    who = at(world.people.operator)
    for tab in TABS:
        page = text(who.get(f"/runs/{run}", {"tab": tab}))
        assert "<script>alert" not in page, tab
        assert "\u202e" not in page, tab
        assert "\x1b" not in page, tab
    row = text(who.get(f"/runs/{run}/rows/1"))
    assert "<script>alert" not in row
    assert "\u202e" not in row


@proves("R-UI-3", part="actions")
def test_pause_resume_and_cancel_are_asked_for_with_their_effects(world: World, company: Company) -> None:
    run = refund(world, company)
    who = at(world.people.operator)
    asked = text(who.get(f"/runs/{run}/actions", {"wish": "pause"}))
    assert "Nothing new starts" in asked
    answer = who.post(f"/runs/{run}/actions", {"wish": "pause"})
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run}")
    assert world.drive(run).status == "paused"
    assert "Resume" in text(who.get(f"/runs/{run}"))
    who.post(f"/runs/{run}/actions", {"wish": "resume"})
    assert world.drive(run).status == "awaiting_gate"
    assert who.post(f"/runs/{run}/actions", {"wish": "cancel"}).status_code == 422
    who.post(f"/runs/{run}/actions", {"wish": "cancel", "reason": "wrong order"})
    assert world.drive(run).status == "cancelled"
    assert "cannot be asked for" in text(who.get(f"/runs/{run}/actions", {"wish": "cancel"}))
    assert who.post(f"/runs/{run}/actions", {"wish": "cancel", "reason": "again"}).status_code == 409


@proves("R-UI-11", part="effects named")
def test_cancelling_names_what_is_done_already(world: World, company: Company) -> None:
    run = refund(world, company)
    with company_at(company.url):
        (request,) = world.open_requests(run)
        world.decide(request, world.people.approver)
        world.drive(run)
    page = text(at(world.people.operator).get(f"/runs/{run}/actions", {"wish": "cancel"}))
    assert "payments.refund" in page
    assert "Cannot be undone." in page


def test_who_may_not_operate_is_told_so(world: World, company: Company) -> None:
    run = refund(world, company)
    who = at(world.people.auditor)
    assert "wish=pause" not in text(who.get(f"/runs/{run}"))
    refused = who.get(f"/runs/{run}/actions", {"wish": "pause"})
    assert refused.status_code == 403
    assert "operate" in text(refused)


def test_a_run_is_replayed_verified_and_exported(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    who = at(world.people.auditor)
    assert "come out the same" in text(who.post(f"/runs/{run}/replayed"))
    assert "The hash chain is whole" in text(who.get(f"/runs/{run}", {"tab": "audit"}))
    file = who.get(f"/runs/{run}/trace.jsonl")
    assert file["Content-Disposition"].endswith(f'{run}.jsonl"')


def test_the_audit_says_who_asked_and_who_decided(world: World, company: Company) -> None:
    run = refund(world, company)
    who = at(world.people.operator)
    who.post(f"/runs/{run}/actions", {"wish": "cancel", "reason": "customer changed their mind"})
    world.drive(run)
    page = text(who.get(f"/runs/{run}", {"tab": "audit"}))
    assert "asked to cancel" in page
    assert "customer changed their mind" in page
    assert "the operator" in page


@proves("R-SESS-11", part="fragments")
def test_fragments_bring_an_old_page_to_what_a_new_one_shows(world: World, company: Company) -> None:
    run = refund(world, company)
    before = world.run(run).event_seq
    with company_at(company.url):
        world.approve_all(run)
    news = run_fragments(world.id, run, before, ("read",))
    page = text(at(world.people.auditor).get(f"/runs/{run}"))
    assert (news.after, extract_sequence(news.seq), news.more) == (before, world.run(run).event_seq, False)
    html = join_lines(news.html)
    for part in ("run-standing", "run-dials"):
        piece = html.split(f'id="{part}"')[1].split("</section>")[0]
        assert piece in page, part
    rows = [part.split("</li>")[0] for part in html.split('<li class="line')[1:]]
    assert len(rows) > 5
    for row in rows:
        assert row in page
    assert run_fragments(world.id, run, news.seq, ("read",)).html == ""


@proves("R-UI-3", part="the answer before what proves it")
def test_a_result_begins_with_its_answer_and_folds_its_hashes(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    page = text(at(world.people.operator).get(f"/runs/{run}"))
    card = page.split('id="result"')[1].split("</section>")[0]
    first, _, folded = card.partition('<details class="fold">')
    assert "129.90" in first
    assert "we have refunded" in first
    assert not re.search("[0-9a-f]{64}", first)
    facts, _, whole = folded.partition("The whole document")
    assert "corner-cafe.example" in facts
    assert not re.search("[0-9a-f]{64}", facts)
    assert re.search("[0-9a-f]{64}", whole)


def test_a_page_of_a_run_asks_a_bounded_number_of_questions(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    who = at(world.people.operator)
    with CaptureQueriesContext(connection) as asked:
        who.get(f"/runs/{run}")
    assert len(asked) <= 60


def test_an_id_that_is_none_is_a_missing_page(world: World) -> None:
    who = at(world.people.operator)
    assert who.get("/runs/nonsense").status_code == 404
    assert who.get(f"/runs/{UUID(int=0)}").status_code == 404


@proves("R-UI-3", part="three voices on the page")
def test_each_voice_is_named_and_what_a_tool_said_is_called_untrusted(world: World, company: Company) -> None:
    run = refund(world, company, whole=True)
    page = text(at(world.people.operator).get(f"/runs/{run}", {"tab": "messages"}))
    for voice, named in (
        ("agent", "Agent"), ("tool", "Tool output, untrusted"), ("system", "System (Interlock)"),
    ):  # fmt: skip
        said = re.findall(rf'<li class="voice voice-{voice}".*?</li>', page, re.DOTALL)
        assert said, voice
        assert all(f"<b>{named}</b>" in one for one in said), voice
