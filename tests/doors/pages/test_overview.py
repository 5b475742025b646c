"""The first page: what needs a person, money, now, health (R-UI-1)."""

import re
from datetime import timedelta
from time import monotonic

from pytest_django import Settings

from approvals.views.live_inbox import view_of
from budgets.models import DriftFlag
from orchestrator.console.views.dashboard import overview_fragments
from orchestrator.outbound.models import CircuitRow
from orchestrator.runs.actions.emergency_stop import stop_everything
from tenancy.core.event_kinds import UNDO_FAILED
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.notifications.outgoing import tell_people
from tests.doors.pages.browsers import words
from tests.doors.pages.people import at, join_lines, refund, text
from tests.doors.pages.people import world as world
from tests.doubles.company import Company
from tests.factories.tenancy import Somebody
from tests.factories.world import World
from tests.proves import proves
from traces.live.feeds import Fragments

PATIENCE = 30


def number_by(page: str, address: str) -> str:
    """The number in a link."""
    found = re.search(rf'href="{re.escape(address)}[^"]*">\s*<b class="num">([^<]*)<', page)
    assert found is not None, address
    return found[1]


@proves("R-UI-1", part="page")
def test_each_number_leads_to_a_list_that_shows_the_same(world: World, company: Company) -> None:
    refund(world, company)
    refund(world, company, whole=True)
    world.submit("tool-loop", "Waits for a worker")
    who = at(world.people.operator)
    page = text(who.get("/"))
    for address, expected in (
        ("/runs?status=queued", "1"),
        ("/runs?view=needs", "1"),
        ("/runs?status=paused", "0"),
    ):
        assert number_by(page, address) == expected
        listed = text(who.get(address))
        assert f"{expected} run" in listed or expected == "0"
    assert number_by(page, "/approvals") == "0"
    assert ">1 open</a> in all" in page
    assert number_by(page, "/runs?created_after=") == "3"
    href = re.search(r'href="(/runs\?created_after=[^"]*)"', page)
    assert href is not None
    assert "3 runs" in text(who.get(href[1].replace("&amp;", "&")))


def open_circuits(page: str) -> list[str]:
    """How many there are, where the page speaks of them."""
    return re.findall(r"(\d+) circuits? open", page)


@proves("R-UI-1", part="ages of what waits, and circuits that are open")
def test_the_first_page_tells_how_old_what_waits_is_and_which_circuits_are_open(
    world: World, company: Company
) -> None:
    refund(world, company)
    world.submit("tool-loop", "Waits for a worker")
    person = at(world.people.approver)
    page = words(person.get("/"))
    assert re.search(r"1 request for you to decide oldest .{1,60}, next deadline ", page)
    assert re.search(r"1 queued oldest ", page)
    # A provider's circuit is everybody's: another test may have left one.
    before = sum(map(int, open_circuits(page)))
    with tenant_transaction(world.id):
        now = database_now()
        CircuitRow.objects.create(
            id=fresh_id(), tenant_id=world.id, kind="tool", subject="mail.send", state="open", failures=3,
            changes=0, until=now + timedelta(minutes=5), reason="timeout", since=now, failed_at=now,
        )  # fmt: skip
    assert open_circuits(words(person.get("/"))) == [str(before + 1)]


def test_every_role_that_reads_has_a_first_page(world: World) -> None:
    for who in (world.people.auditor, world.people.approver, world.people.admin):
        answer = at(who).get("/")
        assert answer.status_code == 200
    assert "Run it" not in text(at(world.people.auditor).get("/"))
    assert "Create an API key" in text(at(world.people.admin).get("/"))


def test_money_is_spent_of_a_ceiling(world: World, company: Company) -> None:
    refund(world, company, whole=True)
    page = text(at(world.people.operator).get("/"))
    assert "This month" in page
    assert "of $1,000.00" in page


def test_a_stop_and_a_broker_that_is_away_are_said(world: World, settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nonexistent/valkey.sock"
    stop_everything("tenant", tenant_id=world.id, reason="drill", by=world.people.admin.id)
    page = text(at(world.people.operator).get("/"))
    assert "Emergency stop" in page
    assert "drill" in page
    assert "Broker away" in page


@proves("R-TOOL-15", part="on the first page")
@proves("R-BUDGET-14", part="drift on the first page")
def test_what_was_left_behind_and_what_drifts_is_said_on_the_first_page(world: World) -> None:
    left = [{"call": "c3", "tool": "mail.send", "why": "irreversible", "says": "it cannot be taken back"}]
    with tenant_transaction(world.id):
        now = database_now()
        data = {"run": str(world.id), "workflow": "support-refund", "left": left}
        tell_people(world.id, UNDO_FAILED, "r:c3", data, at=now, cursor=raw_cursor())
        flag = {"workflow": "tool-loop", "metric": "steps", "was": 3, "is_now": 9, "runs": 30, "told": True}
        DriftFlag.objects.create(tenant_id=world.id, at=now, **flag)
    page = text(at(world.people.operator).get("/"))
    assert "An action of a run of support-refund was not taken back" in page
    assert "- mail.send: it cannot be taken back" in page
    assert f'href="/runs/{world.id}"' in page
    assert "The number of steps of tool-loop drifts" in page
    assert 'href="/budgets/figures?workflow=tool-loop"' in page
    with tenant_transaction(world.id):
        DriftFlag.objects.update(ended_at=database_now())
    assert "drifts" not in text(at(world.people.operator).get("/"))


def test_another_tenants_numbers_are_not_counted(world: World, company: Company) -> None:
    refund(world, company)
    page = text(at(world.people.stranger).get("/"))
    assert number_by(page, "/approvals") == "0"


@proves("R-UI-1", part="what waits for whom")
def test_what_needs_somebody_is_what_they_may_decide(world: World, company: Company) -> None:
    run = refund(world, company, order_id="A-1003")
    reviewer, other = at(world.people.approver), at(world.people.second_approver)
    for who in (reviewer, other):
        page = text(who.get("/"))
        assert number_by(page, "/approvals") == "1"
        assert "<title>(1) Overview" in page
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver)
    assert number_by(text(reviewer.get("/")), "/approvals") == "0"
    assert number_by(text(other.get("/")), "/approvals") == "1"
    operator = text(at(world.people.operator).get("/"))
    assert number_by(operator, "/approvals") == "0"
    assert "<title>Overview" in operator


def cursor(page: str) -> str:
    """Where a page stands."""
    found = re.search(r'data-live="/ws/overview" data-seq="([^"]+)"', page)
    assert found is not None
    return found[1]


def news(world: World, who: Somebody, after: str) -> Fragments:
    """What comes to the first page that somebody has open."""
    return overview_fragments(world.id, after, ("read",), view_of("", who.principal.id))


def bands(html: str) -> list[str]:
    """The four bands as they stand; since when a list counts is the moment of the look."""
    found = re.findall(r'<section class="band".*?</section>', html, re.DOTALL)
    return [re.sub(r'_after=[^"]*', "", one) for one in found]


@proves("R-UI-1", part="live")
def test_the_first_page_follows_as_its_reader_counts(world: World, company: Company) -> None:
    reviewer, auditor = world.people.approver, world.people.auditor
    old = text(at(reviewer).get("/"))
    start = cursor(old)
    assert number_by(old, "/approvals") == "0"
    refund(world, company)
    came = news(world, reviewer, start)
    assert bands(join_lines(came.html)) == bands(text(at(reviewer).get("/")))
    assert [number_by(news(world, who, start).html, "/approvals") for who in (reviewer, auditor)] == [
        "1",
        "0",
    ]
    assert 'id="nav-pending"><span class="unseen">waiting: </span>1<' in came.html
    until = monotonic() + PATIENCE
    while (later := news(world, reviewer, str(came.seq))).html and monotonic() < until:
        # It may be told again while anybody else's older transaction is open.
        assert bands(later.html) == bands(came.html)
        came = later
    assert (later.html, str(later.seq) >= str(came.seq)) == ("", True)


def test_a_stop_reaches_an_open_first_page(world: World) -> None:
    start = cursor(text(at(world.people.auditor).get("/")))
    assert news(world, world.people.auditor, start).html == ""
    stop_everything("tenant", tenant_id=world.id, reason="drill", by=world.people.admin.id)
    assert "drill" in news(world, world.people.auditor, start).html
    polled = at(world.people.auditor).get("/overview/changes.html", {"after": start})
    assert (polled.status_code, "drill" in text(polled)) == (200, True)


def test_another_tenant_s_stir_is_not_heard(world: World, company: Company) -> None:
    stranger = world.people.stranger
    start = cursor(text(at(stranger).get("/")))
    refund(world, company)
    assert overview_fragments(
        world.people.other_tenant.id, start, ("read",), view_of("", stranger.principal.id)
    ).html == ""  # fmt: skip
