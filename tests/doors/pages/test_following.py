"""What an open page of a run applies, tab by tab: at the end it shows what a new one shows (R-SESS-11)."""

import re
from uuid import UUID

import pytest

from orchestrator.console.views.fragments import LIST_VIEWS, RUN_VIEWS, list_fragments, run_fragments
from orchestrator.console.views.tabs import TABS
from orchestrator.runs.actions import run_signals
from tenancy.db.change_cursor import mark_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import at, join_lines, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from tests.proves import proves
from traces.live.feeds import Fragments, extract_sequence

ROWS = {
    "timeline": "row", "messages": "said", "facts": "fact", "ledger": "entry", "audit": "act", "raw": "raw",
}  # fmt: skip
STATES = {
    "plan": ("run-plan", "</ol>"), "ledger": ("ledger-sums", "</p>"),
    "audit": ("run-chain", "</section>"), "raw": ("raw-whole", "</div>"),
    "files": ("run-files", "</div>"),
}  # fmt: skip
WHOLE = {"raw-lines", *(name for name, _ in STATES.values())}
READ = ("read",)


def ids(html: str, kind: str) -> list[str]:
    """The rows of one kind, in order, each once."""
    found = re.findall(rf'id="({kind}-[^"]+)"', html)
    return list(dict.fromkeys(one for one in found if one not in WHOLE))


def cursor(page: str) -> str:
    """Where a page stands."""
    found = re.search(r'data-seq="([^"]+)"', page)
    assert found is not None
    return found[1]


def news_of(world: World, run: UUID, after: str, view: str) -> tuple[Fragments, str]:
    """All that comes after a cursor: the last frame, and what all of them say."""
    said = ""
    while True:
        found = run_fragments(world.id, run, after, READ, view)
        said += found.html
        if not found.more:
            return found, said
        assert extract_sequence(found.seq) > extract_sequence(after)
        after = str(found.seq)


@proves("R-UI-3", part="every tab follows")
@pytest.mark.parametrize("tab", list(TABS))
def test_a_followed_tab_shows_what_a_new_page_shows(world: World, company: Company, tab: str) -> None:
    run = refund(world, company)
    reader = at(world.people.auditor)
    old = text(reader.get(f"/runs/{run}", {"tab": tab}))
    assert f'data-view="{tab}"' in old
    with company_at(company.url):
        world.approve_all(run)
    news, html = news_of(world, run, cursor(old), tab)
    new = text(reader.get(f"/runs/{run}", {"tab": tab}))
    assert news.seq == cursor(new)
    assert "Succeeded" in html
    assert "</bdi></b> approved" in html.partition('aria-label="Decided"')[2]
    if kind := ROWS.get(tab):
        came = ids(html, kind)
        assert came
        shown = [one for one in ids(old, kind) if one not in came] + came
        # A new page of a long list begins later.
        assert shown[-len(ids(new, kind)) :] == ids(new, kind)
    if state := STATES.get(tab):
        name, end = state
        assert join_lines(html.split(f'id="{name}"')[1].split(end)[0]) in new
    assert run_fragments(world.id, run, news.seq, READ, tab).html == ""


def test_a_page_that_shows_older_rows_is_told_of_the_state_alone(world: World, company: Company) -> None:
    run = refund(world, company)
    for query in ({"before": "9"}, {"tab": "messages", "before": "9"}, {"tab": "raw", "before": "9"}):
        assert 'data-view="head"' in text(at(world.people.auditor).get(f"/runs/{run}", query))
    _, html = news_of(world, run, "0", "head")
    assert 'id="run-standing"' in html
    assert 'id="row-' not in html


@proves("R-SESS-11", part="what is said beside the trace")
def test_the_first_of_two_votes_reaches_an_open_page(world: World, company: Company) -> None:
    run = refund(world, company, order_id="A-1003")
    page = text(at(world.people.auditor).get(f"/runs/{run}"))
    assert "(0 agreed)" in page
    (request,) = world.open_requests(run)
    before = world.run(run).event_seq
    world.decide(request, world.people.approver)
    news = run_fragments(world.id, run, cursor(page), READ)
    assert world.run(run).event_seq == before
    assert "(1 agreed)" in news.html
    assert f'id="card-state-{request.id}"' in news.html
    assert "the reviewer" in news.html
    assert (extract_sequence(news.seq), news.seq != cursor(page)) == (before, True)
    assert run_fragments(world.id, run, news.seq, READ).html == ""


def test_a_wish_reaches_the_audit_of_an_open_page_at_once(world: World, company: Company) -> None:
    run = refund(world, company)
    page = text(at(world.people.auditor).get(f"/runs/{run}", {"tab": "audit"}))
    run_signals.pause(world.id, run, by=world.people.operator.id, reason="look at it first")
    news = run_fragments(world.id, run, cursor(page), READ, "audit")
    assert "look at it first" in news.html
    assert "record" not in news.html.split("look at it first")[1].split("</tr>")[0]
    world.drive(run)
    taken = run_fragments(world.id, run, news.seq, READ, "audit")
    assert "record" in taken.html.split("look at it first")[1].split("</tr>")[0]


def test_every_view_is_followed_and_lists_let_in_what_fits(world: World, company: Company) -> None:
    assert set(TABS) < set(RUN_VIEWS)
    with tenant_transaction(world.id):
        before = str(mark_now())
    run = refund(world, company)
    entering = {
        view: f'id="run-{run}"' in list_fragments(world.id, before, READ, view).html.split("data-prepend")[1]
        for view in LIST_VIEWS
    }
    assert entering == {"all": True, "needs": True, "problems": False, "active": False, "kept": False}
