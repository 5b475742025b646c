"""A tool server that never keeps still: what it makes us ask, keep and put to people has an end (P13).

Judged by the server's own list of requests, and by our rows.
"""

from typing import Any

import pytest
from pytest_django import Settings

from orchestrator.core.common.errors import ServerUnreachable
from orchestrator.core.tools.remote_definition import (
    MOST_KNOWN,
    MOST_PAGES,
    MOST_TOOLS,
    Drift,
    Listing,
    parse_listed_tool,
)
from orchestrator.publishing.models import ToolVersion
from orchestrator.runs.models.run import Run
from orchestrator.tools.actions.tool_servers import look_at_server, note_drift, note_listing
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.models.tool_server import ServerTool, ToolDefinition
from orchestrator.tools.queries.tool_servers import server_of
from orchestrator.tools.queries.tools import tool_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.conftest import House
from tests.doubles.mcp_server import OFFERED, ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.doubles.openai_server import Call
from tests.factories.foreign import Obedient, foreign, onwards
from tests.factories.servers import READS, admit, connect, let_in, offered
from tests.factories.world import World, make_world
from tests.proves import proves

CALLS = 3
# As many as it takes to open a session of either protocol, list once and call once.
ONE_LOOK = {False: ["server/discover", "tools/list"],
            True: ["server/discover", "initialize", "notifications/initialized", "tools/list"]}  # fmt: skip


@pytest.fixture
def world(house: House, tool_server: ToolServer) -> World:
    """A furnished house, the server connected, one reader admitted; the server's log begins here."""
    found = make_world(house)
    connect(found.id, tool_server)
    admit(found.id, "find-customer", **READS)
    let_in(found, "shop")
    tool_server.forget()
    return found


def kept(world: World) -> dict[str, int]:
    """How many rows there are of everything that a server could make us write."""
    with tenant_transaction(world.id):
        return {
            "definitions": ToolDefinition.objects.count(),
            "tools": ServerTool.objects.count(),
            "versions": ToolVersion.objects.filter(slug__startswith="shop.").count(),
            "proposals": ToolProposal.objects.count(),
            "lines": AuditEntry.objects.filter(object__startswith="tool:shop.").count(),
        }


def more(world: World, before: dict[str, int]) -> dict[str, int]:
    """What there is more of since."""
    return {name: count - before[name] for name, count in kept(world).items() if count != before[name]}


def look_up(world: World, settings: Settings) -> Run:
    """A run that looks people up, and what became of it."""
    names = ("Ada", "Bob", "Carol")[:CALLS]
    model = Obedient(*(Call("shop_find_customer", {"name": name}) for name in names))
    with foreign(settings, model):
        run = world.submit("tool-loop", "Who are they?")
        return onwards(world, run)


def page_of(number: int) -> Listing:
    """As many tools as a list may have, each under a name that no other page has."""
    names = (f"p{number}t{place}" for place in range(MOST_TOOLS))
    return Listing(
        tools=tuple(parse_listed_tool({"name": name, "inputSchema": {"type": "object"}}) for name in names)
    )


@proves("P13", part="a storm of notices, in a look")
@pytest.mark.parametrize("legacy", [False, True])
def test_however_often_it_says_that_its_list_changed_it_is_asked_once_a_look(
    world: World, tool_server: ToolServer, legacy: bool
) -> None:
    before = kept(world)
    tool_server.tell(legacy=legacy, storm=300)
    look_at_server(world.id, "shop", by=None)
    assert tool_server.shop.requests() == ONE_LOOK[legacy]
    assert more(world, before) == {}


@proves("P13", part="a storm of notices, in a run")
@pytest.mark.parametrize("legacy", [False, True])
def test_however_often_it_says_that_its_list_changed_it_is_asked_once_a_call(
    world: World, tool_server: ToolServer, settings: Settings, legacy: bool
) -> None:
    before = kept(world)
    tool_server.tell(legacy=legacy, storm=300)
    assert look_up(world, settings).terminal_code == "SUCCESS"
    calls = len(tool_server.calls("find-customer"))
    assert calls == CALLS
    assert sorted(tool_server.shop.requests()) == sorted(calls * [*ONE_LOOK[legacy], "tools/call"])
    assert more(world, before) == {}


@proves("P13", part="another list at every look")
def test_a_list_that_is_another_one_each_time_is_kept_once_a_look(
    world: World, tool_server: ToolServer
) -> None:
    before = kept(world)
    tool_server.tell(changing=True, storm=300)
    for _ in range(3):
        look_at_server(world.id, "shop", by=None)
    assert tool_server.shop.requests() == 3 * ONE_LOOK[False]
    new, each = len(OFFERED) + 1, len(OFFERED)
    # In each look: every tool as it is then, the one that has a new name, and the last new one that is gone.
    assert more(world, before) == {"definitions": 3 * new, "tools": 3, "lines": 3 * each + 2}


@proves("P13", part="another list at every call of a run")
def test_a_tool_that_is_another_one_each_time_is_listed_once_and_never_called(
    world: World, tool_server: ToolServer, settings: Settings
) -> None:
    before = kept(world)
    tool_server.tell(changing=True)
    look_up(world, settings)
    look_up(world, settings)
    assert tool_server.calls() == []
    # What was out side by side when it was noticed was out; nothing after it leaves the house.
    assert 1 <= tool_server.shop.requests().count("tools/list") <= CALLS
    assert more(world, before) == {"definitions": 1, "lines": 1}
    assert offered(world.id, "find-customer").row.state == "quarantined"


@proves("P13", part="calls side by side that each find another tool")
def test_of_a_storm_of_findings_the_first_shuts_the_tool_and_the_others_write_nothing(world: World) -> None:
    before = kept(world)
    admitted = offered(world.id, "find-customer").row.admitted
    for number in range(40):
        raw = {"name": "find-customer", "description": f"As of {number}.", "inputSchema": {"type": "object"}}
        for now in (parse_listed_tool(raw), None):
            note_drift(world.id, Drift(server="shop", tool="find-customer", admitted=admitted, now=now))
    assert more(world, before) == {"definitions": 1, "lines": 1}
    assert offered(world.id, "find-customer").row.why.startswith("Its definition changed")


@proves("P13", part="new names at every look")
def test_a_server_that_names_its_tools_anew_each_time_is_not_listened_to_for_ever(world: World) -> None:
    pages = MOST_KNOWN // MOST_TOOLS
    for page in range(pages - 1):
        note_listing(world.id, "shop", page_of(page), by=None)
    with pytest.raises(ServerUnreachable, match=f"more than {MOST_KNOWN} tools"):
        note_listing(world.id, "shop", page_of(pages), by=None)
    assert kept(world)["tools"] == MOST_KNOWN - MOST_TOOLS + len(OFFERED)


@proves("P13", part="nothing of an endless list is kept, and people see why")
@pytest.mark.parametrize(
    ("control", "lists"), [({"pages": "endless"}, MOST_PAGES), ({"more": 10_000}, 1), ({"more": 300}, 1)]
)
def test_of_a_list_past_its_bound_nothing_is_kept_but_the_reason(
    world: World, tool_server: ToolServer, control: dict[str, Any], lists: int
) -> None:
    before = kept(world)
    tool_server.tell(**control)
    with pytest.raises(ServerUnreachable):
        look_at_server(world.id, "shop", by=None)
    assert tool_server.shop.requests().count("tools/list") == lists
    assert more(world, before) == {}
    with tenant_transaction(world.id):
        assert "tools" in server_of("shop").fault


@proves("P13", part="an endless list in a run")
@pytest.mark.parametrize("control", [{"pages": "endless"}, {"more": 10_000}])
def test_a_run_whose_tool_is_lost_in_an_endless_list_ends_and_calls_nothing(
    world: World, tool_server: ToolServer, settings: Settings, control: dict[str, Any]
) -> None:
    before = kept(world)
    tool_server.tell(**control)
    found = look_up(world, settings)
    assert found.terminal_code
    assert tool_server.calls() == []
    with tenant_transaction(world.id):
        tries = 1 + tool_now(world.id, "shop.find_customer").spec.max_retries
    assert tool_server.shop.requests().count("tools/list") <= CALLS * tries * MOST_PAGES
    assert more(world, before) == {}
