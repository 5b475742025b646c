"""The page of money: what is spent, the ceilings, the ledger (R-UI-7, R-BUDGET-9)."""

import csv
import re
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.test import AsyncRequestFactory, Client

from budgets.actions import change_ceilings
from budgets.core.ceilings import Ceilings
from budgets.core.dimension import Dimension
from budgets.models import Entry, RateLimit, RunFigures, TenantCeiling
from budgets.queries import get_usage_lines
from budgets.queries.entries import EntryFilter, iterate_entry_rows, list_ledger_entries
from budgets.queries.tenant import windows_now
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.tools.actions.tool_updates import change_tool
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tenancy.web.file_streaming import csv_file, escape_csv_cell
from tests.doors.api.program import program
from tests.doors.pages.browsers import words
from tests.doors.pages.forms import Form, forms_of
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves


def ceilings(admin: Client) -> Form:
    """The form."""
    return next(form for form in forms_of(admin.get("/budgets")) if "daily_usd" in form.fields)


def spend(world: World) -> UUID:
    """A run that costs something."""
    change_tool(world.id, "calculator.evaluate", asked_change({"price_usd": "0.2"}), by=None, reason="")
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    world.drive(run)
    return run


@proves("R-UI-7", part="ceilings")
@proves("R-SEC-6", part="ceilings on the page")
def test_ceilings_are_set_with_a_reason_and_their_history_stays(admin: Client, world: World) -> None:
    form = ceilings(admin)
    assert (form.fields["per_run_usd"], form.fields["daily_usd"]) == ("5", "100")
    typed = {
        **form.fields, "daily_usd": "20.5", "monthly_usd": "", "no_monthly_usd": "on",
        "reason": "A quiet month",
    }  # fmt: skip
    assert admin.post("/budgets/ceilings", typed).status_code == 302
    page = words(admin.get("/budgets"))
    assert "A quiet month" in page
    assert "$20.50" in page
    assert "no ceiling" in page
    with tenant_transaction(world.id):
        assert AuditEntry.objects.get(verb="set_ceilings").principal == world.people.admin.id
        assert TenantCeiling.objects.get().daily_usd == Decimal("20.5")


@proves("R-BUDGET-9", part="an empty field removes no ceiling")
@pytest.mark.parametrize(
    "typed",
    [
        {"daily_usd": "-1"},
        {"daily_usd": "much"},
        {"reason": ""},
        {"daily_usd": "1e30"},
        {"daily_usd": "NaN"},
        {"daily_usd": ""},
        {"daily_usd": " "},
        {"no_daily_usd": "on"},
    ],
)
def test_a_wrong_ceiling_is_named_and_changes_nothing(
    admin: Client, world: World, typed: dict[str, str]
) -> None:
    answer = admin.post("/budgets/ceilings", {**ceilings(admin).fields, "reason": "x", **typed})
    assert answer.status_code == 422
    assert "Nothing was changed yet." in text(answer)
    with tenant_transaction(world.id):
        assert not TenantCeiling.objects.exists()


@proves("R-BUDGET-9", part="a removed ceiling waits on a page")
def test_a_ceiling_that_is_removed_waits_on_a_page_for_another_administrator(
    admin: Client, world: World
) -> None:
    second = at(make_somebody(world.house.tenant, Role.ADMIN))
    typed = {**ceilings(admin).fields, "daily_usd": "", "no_daily_usd": "on", "reason": "A launch"}
    answer = admin.post("/budgets/ceilings", typed)
    assert (answer.status_code, answer["Location"]) == (302, "/change-requests")
    assert admin.post("/budgets/ceilings", typed).status_code == 409
    assert "1 change waits for a second administrator" in words(second.get("/"))
    page = second.get("/change-requests")
    assert "No ceiling holds for a day any more; it was $100." in words(page)
    form = next(form for form in forms_of(page) if "proposal" in form.fields)
    done = second.post("/change-requests", {**form.fields, "agree": "agree", "reason": "Yes"}, follow=True)
    assert "The ceilings hold from the next reservation on." in words(done)
    with tenant_transaction(world.id):
        assert TenantCeiling.objects.get().daily_usd is None
    assert "waits for a second administrator" not in words(second.get("/"))


@proves("R-SEC-6", part="what one loosened alone is on the first page")
def test_what_one_administrator_loosened_alone_is_on_the_first_page(
    admin: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = {**ceilings(admin).fields, "daily_usd": "200", "reason": "A launch"}
    assert admin.post("/budgets/ceilings", typed).status_code == 302
    page = words(admin.get("/"))
    assert "loosened the ceilings alone" in page
    assert "A launch" in page
    later = database_now() + timedelta(days=8)
    monkeypatch.setattr("orchestrator.console.views.dashboard.database_now", lambda: later)
    assert "loosened the ceilings alone" not in words(admin.get("/"))


def test_ceilings_that_somebody_set_meanwhile_are_412(admin: Client) -> None:
    form = ceilings(admin)
    for amount, status in (("20", 302), ("10", 412)):
        typed = {**form.fields, "daily_usd": amount, "reason": "x"}
        assert admin.post("/budgets/ceilings", typed).status_code == status


@proves("R-UI-7", part="the meter, the ledger and the API say the same to the cent")
def test_page_ledger_and_api_agree_to_the_cent(admin: Client, world: World) -> None:
    spend(world)
    with tenant_transaction(world.id):
        day = windows_now(database_now())["tenant_day"]
        found = list(iterate_entry_rows(list_ledger_entries(EntryFilter(), day, 1_000)))
    assert day.spent > 0
    assert sum(row.used for row in found) == day.spent
    assert sum(row.reserved for row in found) == day.held
    said = program(world.id, Role.AUDITOR).get("/ceilings").json()["day"]
    assert (Decimal(said["spent_usd"]), Decimal(said["reserved_usd"])) == (day.spent, day.held)
    assert f'value="{day.spent}"' in text(admin.get("/budgets"))


def lines(answer: Any) -> list[dict[str, str]]:
    """A CSV file's rows."""
    whole = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(StringIO(whole)))


@proves("R-UI-7", part="ledger with filters and CSV")
def test_the_ledger_is_filtered_and_downloaded(admin: Client, world: World) -> None:
    run = spend(world)
    assert "tranche" in words(admin.get("/budgets/ledger"))
    assert "No entry matches" in words(admin.get("/budgets/ledger?cause=correction"))
    drawn = lines(admin.get("/budgets/ledger.csv?cause=tranche"))
    assert {row["cause"] for row in drawn} == {"tranche"}
    with tenant_transaction(world.id):
        day = windows_now(database_now())["tenant_day"]
    everything = lines(admin.get("/budgets/ledger.csv"))
    assert sum(Decimal(row["used"]) for row in everything) == day.spent
    of_run = lines(admin.get(f"/budgets/ledger.csv?run={run}&dimension=tool_calls"))
    assert {row["dimension"] for row in of_run} == {"tool_calls"}
    assert {"reserve", "settle"} <= {row["cause"] for row in of_run}
    with tenant_transaction(world.id):
        assert sum(Decimal(row["used"]) for row in of_run) == get_usage_lines(run)[Dimension.TOOL_CALLS].used
    page = words(admin.get(f"/budgets/ledger?run={run}&dimension=tool_calls"))
    assert "tool calls" in page
    assert "input_tokens" not in page.partition("Limit")[2]


@proves("R-UI-7", part="a ledger longer than a page")
def test_a_long_ledger_is_paged_and_its_file_read_in_pieces(
    admin: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = spend(world)
    monkeypatch.setattr("budgets.views.ledger.PAGE_OF_A_RUN", 3)
    monkeypatch.setattr("budgets.views.ledger.PIECE", 2)
    seen: list[str] = []
    address = f"/budgets/ledger?run={run}"
    while address:
        page = text(admin.get(address))
        seen += re.findall(r'<time datetime="([^"]+)"', page.partition("<tbody>")[2])
        following = re.search(r'href="([^"]+)" rel="next"', page)
        address = following[1].replace("&amp;", "&") if following else ""
    file = lines(admin.get(f"/budgets/ledger.csv?run={run}"))
    assert len(file) == len(seen) > 10
    assert seen == sorted(seen, reverse=True)
    with tenant_transaction(world.id):
        assert len({row["id"] for row in file}) == Entry.objects.filter(run_id=run).count()


def test_a_cell_is_never_a_formula_and_a_number_stays_one() -> None:
    assert [escape_csv_cell(value) for value in ("=1+1", "@x", "-2", "plain", Decimal("-0.5"))] == [
        "'=1+1",
        "'@x",
        "'-2",
        "plain",
        Decimal("-0.5"),
    ]


@proves("R-UI-7", part="the file under the asynchronous server")
async def test_a_file_is_made_piece_by_piece_under_either_server() -> None:
    request = AsyncRequestFactory().get("/")
    answer = csv_file(request, "a.csv", [[("a", "=b")], [("1", Decimal("0.5"))]])
    assert answer.is_async
    assert [piece async for piece in answer] == [b"a,'=b\r\n", b"1,0.5\r\n"]


@pytest.mark.parametrize(
    "query", ["day=x", "cause=<b>", "run=1", "before=1", f"day={UUID(int=0)}", "dimension=x"]
)
@pytest.mark.parametrize("page", ["", "/ledger", "/ledger.csv", "/figures"])
def test_nonsense_in_the_address_is_left_out(admin: Client, page: str, query: str) -> None:
    assert admin.get(f"/budgets{page}?{query}").status_code == 200


@proves("R-BUDGET-14", part="tenant page")
def test_the_page_tells_where_the_month_went_and_where_it_is_heading(admin: Client, world: World) -> None:
    spend(world)
    page = words(admin.get("/budgets"))
    for word in ("By workflow", "tool-loop", "By tool", "calculator.evaluate", "2 calls", "By model"):
        assert word in page, word
    assert "more is of runs under way" not in page
    with tenant_transaction(world.id):
        now = database_now()
        # The first hour of a window says nothing of where it is heading.
        heading = [one for one in windows_now(now).values() if one.outlook(now) is not None]
    assert page.count("by the end") == len(heading)
    (days,) = re.findall(r'<svg class="spread".*?</svg>', text(admin.get("/budgets")), re.DOTALL)
    heights = re.findall(r'<rect [^>]*height="([\d.]+)"', days)
    # A column for each day that something was spent on: only today.
    assert [float(height) > 0 for height in heights] == [True]
    figures = words(admin.get("/budgets/figures?workflow=tool-loop"))
    for word in ("Steps", "Depth", "Tokens", "Cost", "Time at work", "Median", "Cap"):
        assert word in figures, word


def test_a_tenant_without_runs_is_told_what_will_stand_here(admin: Client) -> None:
    assert "No run has ended yet" in words(admin.get("/budgets/figures"))
    assert "No entry yet" in words(admin.get("/budgets/ledger"))


@proves("R-UI-7", part="a drift is flagged")
def test_a_drift_is_flagged(admin: Client, world: World) -> None:
    with tenant_transaction(world.id):
        RunFigures.objects.bulk_create(
            RunFigures(
                tenant_id=world.id, workflow="slow", terminal_code="SUCCESS",
                ended_at=database_now() - timedelta(minutes=number), steps_limit=10,
                steps=9 if number < 40 else 3 + number % 2,
            )
            for number in range(80)
        )  # fmt: skip
    page = words(admin.get("/budgets/figures"))
    assert "Drifts" in page
    assert page.count("Drifts") == 1
    assert "40 of these runs used 80 % of their cap or more" in page


@proves("R-BUDGET-10", part="in app")
def test_alerts_stand_on_the_first_page_and_with_the_money(admin: Client, world: World) -> None:
    spend(world)
    ceiling = Ceilings(daily_usd=Decimal("0.5"))
    change_ceilings(world.id, ceiling, by=None, reason="tight")
    for address in ("/", "/budgets"):
        page = words(admin.get(address))
        assert "80 % of the ceiling for today is taken" in page
        assert "50 % of the ceiling" not in page


@proves("R-BUDGET-11", part="on the page")
def test_limits_of_admission_are_set_with_a_reason(admin: Client, world: World) -> None:
    form = next(form for form in forms_of(admin.get("/budgets")) if "rates-queue_depth" in form.fields)
    typed = {**form.fields, "rates-queue_depth": "7", "rates-key_queue_depth": "", "rates-reason": "Calm"}
    assert admin.post("/budgets/rates", {**typed, "rates-queue_depth": "0"}).status_code == 422
    assert admin.post("/budgets/rates", typed).status_code == 302
    assert admin.post("/budgets/rates", typed).status_code == 412
    page = words(admin.get("/budgets"))
    assert "Calm" in page
    with tenant_transaction(world.id):
        assert (RateLimit.objects.get().queue_depth, RateLimit.objects.get().key_queue_depth) == (7, None)


def test_who_only_reads_sets_no_limit(world: World) -> None:
    auditor = at(world.people.auditor)
    assert auditor.post("/budgets/rates", {}).status_code == 403
    assert "needs the role admin" in words(auditor.get("/budgets"))
