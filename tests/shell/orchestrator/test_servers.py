"""Tool servers of a tenant: added, looked at, admitted, quarantined, removed; each on the record."""

from typing import Any

import pytest
from pytest_django import Settings

from orchestrator.core.common.errors import EgressRefused, NameTaken, Quarantined, ServerUnreachable
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.tools.registration import asked_admission
from orchestrator.core.tools.remote_definition import Listing, parse_listed_tool
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.actions.versions import active_tools
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.tool_servers import (
    NewServer,
    add_server,
    admit_tool,
    look_at_server,
    note_listing,
    quarantine_tool,
    remove_server,
)
from orchestrator.tools.actions.tool_updates import change_tool
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.models.tool_server import ServerTool
from orchestrator.tools.queries.relaxation_proposals import find_stale_reason
from orchestrator.tools.queries.tool_servers import offered_by, places_now, server_of, servers_now
from orchestrator.tools.queries.tools import tool_now
from tenancy.core.errors import InvalidInput, NotFound, SecretUnusable, Stale
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tenancy.secret_store import keep_secret
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.factories.servers import CHANGES, READS, admit, connect, let_in, offered
from tests.factories.tenancy import make_tenant
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def connected(world: World, tool_server: ToolServer) -> World:
    """The server is connected, nothing is admitted."""
    connect(world.id, tool_server)
    return world


def add(world: World, **given: Any) -> None:
    """Add a server."""
    new = {"slug": "shop", "kind": "http", "address": "https://tools.example/mcp", **given}
    add_server(world.id, NewServer(**new), by=None, reason="We need it.")


def states(world: World) -> dict[str, str]:
    """The state of each tool."""
    with tenant_transaction(world.id):
        return {one.row.tool: one.row.state for one in offered_by(server_of("shop"))}


def raw(name: str, **more: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object"}, **more}


def note(world: World, *tools: dict[str, Any]) -> None:
    """The server offers these now."""
    listing = Listing(tools=tuple(parse_listed_tool(tool) for tool in tools), protocol="2026-07-28")
    note_listing(world.id, "shop", listing, by=None)


@proves("R-TOOL-21", part="imported quarantined")
@proves("G4", part="imported tools")
def test_imported_tools_are_in_quarantine_and_in_no_registry(connected: World) -> None:
    assert states(connected) == dict.fromkeys(
        ("find-customer", "send_note", "find_note", "say"), "quarantined"
    )
    with tenant_transaction(connected.id):
        assert not any(name.startswith("shop.") for name in active_tools())
        assert [(one.row.slug, one.row.protocol, one.row.named) for one in servers_now()] == [
            ("shop", "2026-07-28", "double 7")
        ]


@proves("G4", part="no workflow names it")
def test_a_workflow_that_names_what_is_in_quarantine_is_not_published(connected: World) -> None:
    with pytest.raises(CompileFailed):
        let_in(connected, "shop")
    admit(connected.id, "say", **READS)
    let_in(connected, "shop")


@proves("R-TOOL-21", part="an admin sets the risk class")
def test_an_admission_makes_a_version_pinned_to_what_was_seen(connected: World) -> None:
    seen = offered(connected.id, "send_note").row.seen
    made = admit(connected.id, "send_note", **CHANGES).spec
    assert made.remote is not None
    assert (made.name, made.remote.definition, made.trust) == ("shop.send_note", seen, "untrusted")
    assert (made.needs_gate, made.is_mutating, made.max_retries) == (True, True, 0)
    assert made.sensitive == ("/text", "/to")
    assert (made.honours_keys, made.lookup, made.parallel_safe, made.external) == (False, False, False, True)
    with tenant_transaction(connected.id):
        assert "shop.send_note" in active_tools()
        line = AuditEntry.objects.get(verb="tool.admit")
    assert (line.after["admitted"], line.reason) == (seen, "Looked at.")


@proves("R-TOOL-21", part="a changed definition is quarantined again and shown as a diff")
def test_a_changed_definition_goes_back_into_quarantine_with_its_difference(
    connected: World, tool_server: ToolServer
) -> None:
    admit(connected.id, "send_note", **CHANGES)
    tool_server.tell(changed={"send_note": {"description": "Send two notes."}})
    look_at_server(connected.id, "shop", by=None)
    now = offered(connected.id, "send_note")
    assert (now.row.state, now.before, now.after) == (
        "quarantined", {"description": "Send a note to somebody."}, {"description": "Send two notes."}
    )  # fmt: skip
    with tenant_transaction(connected.id):
        assert "shop.send_note" not in active_tools()
        stops = EmergencyStop.objects.filter(tenant_id=connected.id, scope="tool", target="shop.send_note")
        assert stops.filter(lifted_at=None).count() == 1
        assert AuditEntry.objects.filter(verb="tool.quarantine").count() == 1
    made = admit(connected.id, "send_note", **CHANGES)
    assert (made.spec.version, made.enabled, made.emergency_stop) == (2, True, None)


def test_an_admission_of_what_was_not_seen_last_is_refused(connected: World, tool_server: ToolServer) -> None:
    seen = offered(connected.id, "say").row.seen
    tool_server.tell(changed={"say": {"title": "Shout"}})
    look_at_server(connected.id, "shop", by=None)
    with pytest.raises(Stale):
        admit_tool(connected.id, "shop", "say", seen, asked_admission(READS), by=None, reason="")
    with pytest.raises(NotFound):
        admit_tool(connected.id, "shop", "none", seen, asked_admission(READS), by=None, reason="")


@proves("R-TOOL-4", part="quarantine is no switch")
def test_the_tools_own_switch_does_not_lead_out_of_quarantine(connected: World) -> None:
    admit(connected.id, "say", **READS)
    quarantine_tool(connected.id, "shop", "say", by=None, reason="I am not sure.")
    with pytest.raises(Quarantined):
        change_tool(connected.id, "shop.say", asked_change({"enabled": True}), by=None, reason="")
    with tenant_transaction(connected.id):
        assert not tool_now(connected.id, "shop.say").enabled


@proves("P3", part="appears and disappears")
def test_a_tool_that_disappears_is_gone_and_comes_back_into_quarantine(
    connected: World, tool_server: ToolServer
) -> None:
    admit(connected.id, "say", **READS)
    tool_server.tell(gone=["say"])
    look_at_server(connected.id, "shop", by=None)
    assert states(connected)["say"] == "gone"
    tool_server.tell()
    look_at_server(connected.id, "shop", by=None)
    assert states(connected)["say"] == "quarantined"
    with tenant_transaction(connected.id):
        assert "shop.say" not in active_tools()


@proves("P6")
def test_names_are_qualified_and_two_that_collide_are_both_refused(
    world: World, tool_server: ToolServer
) -> None:
    connect(world.id, tool_server)
    note(world, raw("get-order"), raw("get_order"), raw("Pay"), raw("___"), raw("x" * 100))
    assert states(world) == {
        "get-order": "refused", "get_order": "refused", "Pay": "quarantined", "___": "refused",
        "x" * 100: "refused",
        "find-customer": "gone", "send_note": "gone", "find_note": "gone", "say": "gone",
    }  # fmt: skip
    assert offered(world.id, "Pay").row.name == "shop.pay"


@proves("P6", part="no server takes a shipped name")
@pytest.mark.parametrize("slug", ["mail", "orders", "payments", "Shop", "", "a.b", "x" * 32])
def test_a_server_takes_no_name_of_ours(world: World, settings: Settings, slug: str) -> None:
    settings.INTERLOCK_MCP_COMMANDS = {"files": ("/usr/bin/true",)}
    with pytest.raises((NameTaken, InvalidInput)):
        add(world, slug=slug, kind="stdio", address="files")
    with tenant_transaction(world.id):
        assert servers_now() == []


@proves("P8", part="a tool server's address is refused at save")
@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8080/mcp", "http://localhost/mcp", "http://169.254.169.254/", "http://[::1]/mcp",
        "http://[::ffff:10.0.0.1]/mcp", "http://2130706433/", "http://0x7f.1/", "file:///etc/passwd",
        "http://user:pw@tools.example/mcp", "https://nowhere.invalid/mcp",
    ],
)  # fmt: skip
def test_an_address_that_may_not_be_reached_is_refused_when_it_is_added(world: World, address: str) -> None:
    with pytest.raises(EgressRefused):
        add(world, address=address)
    with tenant_transaction(world.id):
        assert servers_now() == []
        assert not AuditEntry.objects.filter(verb="server.add").exists()


@proves("P11")
def test_only_a_command_that_the_operator_names_is_started(
    world: World, settings: Settings, tool_server: ToolServer
) -> None:
    settings.INTERLOCK_MCP_COMMANDS = {"shop": tool_server.argv}
    for address in ("/bin/sh", "sh -c id", "other", ""):
        with pytest.raises(InvalidInput):
            add(world, kind="stdio", address=address)
    add(world, kind="stdio", address="shop")
    look_at_server(world.id, "shop", by=None)
    assert states(world)["say"] == "quarantined"
    settings.INTERLOCK_MCP_COMMANDS = {}
    with pytest.raises(SecretUnusable):
        look_at_server(world.id, "shop", by=None)


def test_a_server_that_does_not_answer_keeps_its_reason(world: World, tool_server: ToolServer) -> None:
    set_places(world.id, ("127.0.0.1:9",), expected=None, by=None, reason="For a test.")
    add(world, address="http://127.0.0.1:9/mcp")
    with pytest.raises(ServerUnreachable):
        look_at_server(world.id, "shop", by=None)
    with tenant_transaction(world.id):
        assert "did not answer" in server_of("shop").fault


@proves("P9", part="a tool server's secret")
def test_a_server_is_given_only_a_secret_of_its_own_origin(connected: World, tool_server: ToolServer) -> None:
    keep_secret(connected.id, "other", "tok-1", origin="https://other.example", by=None)
    for secret in ("other", "none"):
        with pytest.raises(SecretUnusable):
            add(connected, slug="again", address=tool_server.url, secret=secret)
    keep_secret(connected.id, "own", "tok-2", origin=f"http://{tool_server.place}", by=None)
    add(connected, slug="again", address=tool_server.url, secret="own")


@proves("Z4", part="tool servers")
def test_another_tenant_has_neither_the_server_nor_its_private_places(
    connected: World, tool_server: ToolServer
) -> None:
    other = make_tenant()
    with tenant_transaction(other.id):
        assert servers_now() == []
        assert places_now().places == ()
    with pytest.raises(NotFound):
        look_at_server(other.id, "shop", by=None)
    new = NewServer(slug="shop", kind="http", address=tool_server.url)
    with pytest.raises(EgressRefused):
        add_server(other.id, new, by=None, reason="")


def test_a_removed_server_takes_its_tools_along(connected: World) -> None:
    admit(connected.id, "say", **READS)
    remove_server(connected.id, "shop", by=None, reason="Not ours any more.")
    with tenant_transaction(connected.id):
        assert "shop.say" not in active_tools()
        assert servers_now() == []
    with pytest.raises(NotFound):
        remove_server(connected.id, "shop", by=None, reason="")


@proves("R-TOOL-4", part="what waits about a tool goes with its server")
def test_an_admission_that_waits_goes_with_its_server(connected: World) -> None:
    with tenant_transaction(connected.id):
        row = ServerTool.objects.get(tool="say")
        waits = ToolProposal.objects.create(
            tenant_id=connected.id, kind="admit", tool=row.name, reason="We need it", by=fresh_id(),
            body={"server": "shop", "tool": "say", "seen": row.seen, "admission": {}}, weaker=["It is."],
            owner=fresh_id(), at=database_now(),
        )  # fmt: skip
        assert find_stale_reason(connected.id, waits) == ""
    remove_server(connected.id, "shop", by=None, reason="Not ours any more.")
    with tenant_transaction(connected.id):
        waits.refresh_from_db()
        assert waits.status == "outdated"
        assert waits.settled_reason == "Its server was removed, and the tool with it."


def test_what_ships_is_published_beside_what_was_admitted(connected: World) -> None:
    admit(connected.id, "say", **READS)
    seed_tenant(connected.id)
    with tenant_transaction(connected.id):
        assert {"shop.say", "orders.lookup"} <= set(active_tools())


@pytest.mark.parametrize(
    "admission",
    [
        {"risk": "read_only", "reversibility": "irreversible"},
        {"risk": "destructive", "reversibility": "irreversible", "approval": "never"},
        {"risk": "destructive", "reversibility": "irreversible", "recovery": "read_only"},
        {"risk": "destructive", "reversibility": "irreversible", "recovery": "lookup"},
        {"risk": "destructive", "reversibility": "irreversible", "recovery": "lookup",
         "lookup": {"tool": "find_note", "found": "/note"}},
        {"risk": "network"},
        {"risk": "safe", "reversibility": "pure"},
        {**READS, "trust": "trusted"},
    ],
)  # fmt: skip
def test_an_admission_that_no_admin_may_give_is_refused_by_field(
    connected: World, admission: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        admit(connected.id, "send_note", **admission)
    assert caught.value.data["errors"]
    assert states(connected)["send_note"] == "quarantined"


@proves("P8", part="a list of an admin's, in versions")
def test_private_places_are_versions_of_a_list_with_a_reason(world: World) -> None:
    first = set_places(world.id, ("LOCALHOST:9000", "10.0.0.5:80"), expected=0, by=None, reason="Ours.")
    assert (first.version, first.places) == (1, ("10.0.0.5:80", "localhost:9000"))
    assert set_places(world.id, first.places, expected=1, by=None, reason="Again.").version == 1
    with pytest.raises(Stale):
        set_places(world.id, (), expected=0, by=None, reason="Old page.")
    assert set_places(world.id, (), expected=1, by=None, reason="No more.").places == ()
    with tenant_transaction(world.id):
        assert AuditEntry.objects.filter(verb="egress.private").count() == 2


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        (("169.254.169.254:80",), "r"),
        (("*:80",), "r"),
        (("localhost",), "r"),
        (("a:1", "b"), "r"),
        (("a:1",), " "),
    ],
)
def test_a_bad_place_or_no_reason_changes_nothing(world: World, places: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InvalidInput):
        set_places(world.id, places, expected=None, by=None, reason=reason)
    with tenant_transaction(world.id):
        assert places_now().version == 0


def test_the_ports_of_our_own_servers_stay_shut(world: World, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:6390/0"
    for place in ("127.0.0.1:6390", "localhost:6390", "[::1]:6390"):
        with pytest.raises(InvalidInput):
            set_places(world.id, (place,), expected=None, by=None, reason="For fun.")
