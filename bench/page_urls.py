"""The addresses of the console that are measured: those whose answer hangs on what is asked for, by name, and
whatever else the table of addresses has a page at. Furnished like the tests' houses; see `own_database`.
"""

from collections.abc import Callable
from uuid import UUID

from django.urls import resolve

from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.runs.models.run import Run
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.pages.test_every_page import EVERY, address
from tests.doors.pages.test_every_page import belongings as belongings
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World

# What a page is, and no file, fragment, or form of another page.
PAGE = b"<html"


def furnished() -> tuple[World, UUID]:
    """A tenant with its people, and a run of theirs."""
    house = make_tenant()
    world = World(house=House(tenant=house, people=make_people(house)))
    seed_tenant(world.id)
    run = world.submit("tool-loop", "A long run")
    with tenant_transaction(world.id):
        assert Run.objects.get(id=run).event_seq < 11
    return world, run


def states(run: UUID, asked: UUID) -> dict[str, str]:
    """The pages that grow with what is kept, each in the states in which that is asked for, by name."""
    return {
        "overview": "/",
        "list": "/runs",
        "list, one state": "/runs?status=failed",
        "list, ended as": "/runs?terminal_code=BUDGET_EXHAUSTED&workflow=tool-loop",
        "list, a rare title": "/runs?q=A-99999",
        "list, no such title": "/runs?q=nothing+like+it",
        "list, a tool": "/runs?tool=orders.lookup",
        "list, no such tool": "/runs?tool=nobodys.tool",
        "list, cost over": "/runs?cost__gt=0.998",
        "list, far down": "/runs?created_after=2001-01-01T00:00&view=problems",
        "run": f"/runs/{run}",
        "run, each event": f"/runs/{run}?rows=each",
        "run, a row": f"/runs/{run}/rows/9002",
        "run, far back": f"/runs/{run}?before=5000",
        "run, problems": f"/runs/{run}?show=problems",
        "run, search": f"/runs/{run}?q=c777",
        "run, facts": f"/runs/{run}?tab=facts",
        "run, ledger": f"/runs/{run}?tab=ledger",
        "run, plan": f"/runs/{run}?tab=plan",
        "run, messages": f"/runs/{run}?tab=messages",
        "run, audit": f"/runs/{run}?tab=audit",
        "run, raw": f"/runs/{run}?tab=raw",
        "run, files": f"/runs/{run}?tab=files",
        "inbox": "/approvals",
        "inbox, a tool": "/approvals?tab=open&tool=mail.send",
        "inbox, an open card": f"/approvals?open={asked}",
        "inbox, decided": "/approvals?tab=decided",
        "a request": f"/approvals/{asked}",
        "reviews": "/reviews",
        "reviews, answered": "/reviews?tab=answered",
        "budgets": "/budgets",
        "budgets, figures": "/budgets/figures",
        "budgets, ledger": "/budgets/ledger",
        "budgets, a run's ledger": f"/budgets/ledger?run={run}",
        "budgets, prices": "/budgets/prices",
        "submit form": "/new/support-refund",
    }


def everywhere(
    run: UUID, asked: UUID, things: dict[str, str], whole: Callable[[str], bytes | None]
) -> dict[str, str]:
    """The states, and by its route every other page. `things` stand in the places of routes; `whole` gives
    what is answered, None where that is no success."""
    found = states(run, asked)
    seen = {_view(path) for path in found.values()}
    held = things | {"<uuid:run_id>": str(run), "<uuid:request_id>": str(asked)}
    for route in EVERY:
        path = address(route, held)
        if _view(path) not in seen and PAGE in (whole(path) or b""):
            found[route] = path
    return found


def _view(path: str) -> str:
    return resolve(path.partition("?")[0]).view_name
