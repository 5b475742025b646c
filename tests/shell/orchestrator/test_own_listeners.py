"""No tenant's list leads to a server of our own, by whatever name or address; what the operator names is
reached all the same (P8, W3)."""

import asyncio
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import settings as django_settings
from pytest_django import Settings

import orchestrator
from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.policy.private_hosts import read_bound
from orchestrator.core.tools.egress_policy import target_of
from orchestrator.core.tools.registration import asked_declaration
from orchestrator.llm.actions.tenant_models import set_models
from orchestrator.notifications.actions.webhooks import add_webhook
from orchestrator.tools.actions.destinations import set_databases, set_mail
from orchestrator.tools.actions.http_tools import declare_http_tool
from orchestrator.tools.actions.private_hosts import set_places
from orchestrator.tools.actions.tool_servers import NewServer, add_server
from orchestrator.tools.gateways.egress import own_listeners as listeners
from orchestrator.tools.gateways.egress.guarded_transport import operators_leave, resolve_allowed_addresses
from orchestrator.tools.gateways.egress.own_listeners import is_here, own_listeners
from orchestrator.tools.models.tool_server import PrivatePlaces
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import InterlockError, InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.world import World
from tests.proves import proves

WEB, METRICS, DATABASE, BROKER, DEMO = 8123, 9123, 5499, 6399, 8199
OWN = {"web server": WEB, "metrics": METRICS, "database": DATABASE, "broker": BROKER, "demo company": DEMO}


@pytest.fixture(autouse=True)
def deployment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment whose database and broker are at names of this machine."""
    settings.INTERLOCK_PORT, settings.INTERLOCK_METRICS_PORT = WEB, METRICS
    settings.REDIS_URL = f"redis://:word@localhost:{BROKER}/0"
    settings.INTERLOCK_DEMO_URL = f"http://127.0.0.1:{DEMO}"
    entry = {**settings.DATABASES["default"], "HOST": "127.0.0.1", "PORT": str(DATABASE)}
    monkeypatch.setattr(django_settings, "DATABASES", {"default": entry})
    listeners._resolve_addresses.cache_clear()


def own_address() -> str:
    """An address of this machine beside loopback, where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def list_places(world: World, *places: str) -> None:
    """A list from before anybody looked at where its places lead."""
    with tenant_transaction(world.id):
        PrivatePlaces.objects.create(
            tenant_id=world.id, version=1, places=list(places), reason="Old", by=None, at=database_now()
        )


def refusal(world: World, place: str, *addresses: str) -> str:
    """Why a place on the list is not connected; empty where it is."""

    async def resolver(_host: str, _port: int) -> Sequence[str]:
        return addresses

    target = target_of(f"http://{place}")
    with tenant_transaction(world.id):
        leave = leave_for(target.origin)
    try:
        asyncio.run(resolve_allowed_addresses(target, leave, resolver))
    except EgressRefused as refused:
        return str(refused.data["detail"])
    return ""


@proves("P8", part="our own servers, at every address of this machine")
@proves("W3", part="our own servers")
@pytest.mark.parametrize("name", OWN)
def test_our_own_servers_are_refused_at_every_address_of_this_machine(world: World, name: str) -> None:
    port, here = OWN[name], own_address()
    hosts = ("localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]", here, "me.internal")
    places = [f"{host}:{port}" for host in hosts]
    list_places(world, *places, f"{hosts[-1]}:{port}")
    of_names = {"localhost": ("127.0.0.1", "::1"), "me.internal": (here,)}
    for host, place in zip(hosts, places, strict=True):
        assert f"Interlock's own {name}" in refusal(world, place, *of_names.get(host, ())), place


@proves("P8", part="0.0.0.0 and ::")
def test_an_unspecified_address_is_refused_at_our_own_ports(world: World) -> None:
    list_places(world, f"me.internal:{WEB}")
    for address in ("0.0.0.0", "::"):  # noqa: S104 - an address to refuse
        assert "own web server" in refusal(world, f"me.internal:{WEB}", address)


@proves("P8", part="the same port of another machine is not ours")
def test_our_own_ports_on_another_machine_are_open(world: World) -> None:
    for number, port in enumerate(OWN.values()):
        assert not is_here("10.255.0.7")
        with tenant_transaction(world.id):
            PrivatePlaces.objects.create(
                tenant_id=world.id, version=number + 1, places=[f"them.internal:{port}"], reason="Theirs",
                by=None, at=database_now(),
            )  # fmt: skip
        assert refusal(world, f"them.internal:{port}", "10.255.0.7") == ""


@proves("P8", part="our own database on another machine")
def test_our_own_database_on_another_machine_is_refused_by_its_address(
    world: World, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {**settings.DATABASES["default"], "HOST": "a.internal,10.255.0.9", "PORT": "5432,5433"}
    monkeypatch.setattr(django_settings, "DATABASES", {"default": entry})
    list_places(world, "db.internal:5433", "db.internal:5432")
    assert "own database" in refusal(world, "db.internal:5433", "10.255.0.9")
    assert refusal(world, "db.internal:5432", "10.255.0.9") == ""


def test_an_embedded_database_listens_nowhere_but_at_its_socket(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {**settings.DATABASES["default"], "HOST": "/tmp/somewhere", "PORT": ""}  # noqa: S108 - a name
    monkeypatch.setattr(django_settings, "DATABASES", {"default": entry})
    for embedded, ports in ((True, set()), (False, {5432})):
        settings.INTERLOCK_EMBEDDED = embedded
        assert {one.port for one in own_listeners() if one.name == "database"} == ports


@proves("P8", part="what the operator's settings name")
def test_what_the_operator_names_is_reached_at_its_own_port_only() -> None:
    leave = operators_leave(f"http://127.0.0.1:{DEMO}")
    assert asyncio.run(resolve_allowed_addresses(target_of(f"http://127.0.0.1:{DEMO}/orders"), leave)) == (
        "127.0.0.1",
    )
    for port in (WEB, BROKER, DATABASE):
        with pytest.raises(EgressRefused):
            asyncio.run(resolve_allowed_addresses(target_of(f"http://127.0.0.1:{port}/"), leave))


@proves("P8", part="a tenant's list within the operator's")
def test_a_list_from_before_opens_no_more_than_the_operator_allows(world: World, settings: Settings) -> None:
    list_places(world, "127.0.0.1:9", "10.255.0.7:9")
    assert refusal(world, "127.0.0.1:9") == refusal(world, "10.255.0.7:9") == ""
    settings.INTERLOCK_PRIVATE_PLACES = read_bound("loopback")
    assert refusal(world, "127.0.0.1:9") == ""
    assert "lets no tenant open" in refusal(world, "10.255.0.7:9")
    settings.INTERLOCK_PRIVATE_PLACES = ()
    assert "lets no tenant open" in refusal(world, "127.0.0.1:9")


@proves("P8", part="refused at save")
@pytest.mark.parametrize(
    ("bound", "place"),
    [
        ("", "127.0.0.1:9"),
        ("", "crm.internal:9"),
        ("loopback", "10.0.0.5:9"),
        ("loopback", f"localhost:{WEB}"),
        ("loopback", f"[::1]:{DEMO}"),
        ("loopback:9", "127.0.0.1:10"),
        ("db.internal", "crm.internal:9"),
    ],
)
def test_a_place_beyond_the_operators_list_is_not_kept(
    world: World, settings: Settings, bound: str, place: str
) -> None:
    settings.INTERLOCK_PRIVATE_PLACES = read_bound(bound)
    with pytest.raises(InvalidInput) as caught:
        set_places(world.id, (place,), expected=None, by=None, reason="For fun.")
    assert [error["pointer"] for error in caught.value.data["errors"]] == ["/places/0"]


def test_a_place_that_the_operator_shut_since_can_still_be_taken_off(
    world: World, settings: Settings
) -> None:
    set_places(world.id, ("127.0.0.1:9", "127.0.0.1:10"), expected=None, by=None, reason="Ours.")
    settings.INTERLOCK_PRIVATE_PLACES = ()
    found = set_places(world.id, ("127.0.0.1:9",), expected=None, by=None, reason="One less.")
    assert found.places == ("127.0.0.1:9",)


def say_database(house: UUID, place: str) -> None:
    """A database there."""
    one = {"name": "books", "host": "127.0.0.1", "port": int(place), "database": "b", "reader": "r"}
    set_databases(house, (one,), expected=None, by=None, reason="x")


def say_mail(house: UUID, place: str) -> None:
    """A mail server there."""
    given = {"host": "127.0.0.1", "port": int(place), "sender": "a@house.example", "tls": "off"}
    set_mail(house, given, expected=None, by=None, reason="x")


def say_model(house: UUID, place: str) -> None:
    """A model there."""
    one = {
        "name": "own",
        "provider": "openai",
        "model": "m",
        "base_url": f"http://127.0.0.1:{place}/v1",
        "roles": ["executor"],
        "price": {"input_usd_per_mtok": "0", "output_usd_per_mtok": "0"},
    }
    set_models(house, (one,), expected=None, by=None, reason="x")


def say_server(house: UUID, place: str) -> None:
    """A tool server there."""
    new = NewServer(slug="shop", kind="http", address=f"http://127.0.0.1:{place}/mcp", secret="")
    add_server(house, new, by=None, reason="x")


def say_tool(house: UUID, place: str) -> None:
    """An HTTP tool there."""
    given = {
        "name": "crm.find", "description": "Finds.", "risk": "read_only", "reversibility": "pure",
        "request": {"method": "GET", "url": f"http://127.0.0.1:{place}/x"},
        "input_schema": {"type": "object", "properties": {}},
    }  # fmt: skip
    declare_http_tool(house, asked_declaration(given), by=None, reason="x")


def say_webhook(house: UUID, place: str) -> None:
    """An endpoint there."""
    add_webhook(house, name="ops", url=f"http://127.0.0.1:{place}/hook", events=("run.ended",), by=None)


@proves("P8", part="every road is judged when it is saved")
@proves("W3", part="every road is judged when it is saved")
@pytest.mark.parametrize("say", [say_database, say_mail, say_model, say_server, say_tool, say_webhook])
def test_every_road_to_our_own_web_server_is_refused_when_it_is_saved(world: World, say: object) -> None:
    assert callable(say)
    list_places(world, f"127.0.0.1:{WEB}", "127.0.0.1:9")
    with pytest.raises(InterlockError) as caught:
        say(world.id, str(WEB))
    assert "own web server" in str(caught.value.data), caught.value.data
    say(world.id, "9")


@proves("P8", part="one way out")
def test_egress_policy_is_made_in_two_places_only() -> None:
    root = Path(orchestrator.__file__).parent
    made = {
        f"{path.relative_to(root)}": len(re.findall(r"(?<![\w])EgressPolicy\(", path.read_text()))
        for path in root.rglob("*.py")
    }
    found = {path: count for path, count in made.items() if count}
    # The tenant's, the operator's, the class, and one that allows nothing where a server is a command.
    assert found == {
        "core/tools/egress_policy.py": 1,
        "tools/gateways/egress/guarded_transport.py": 1,
        "tools/gateways/mcp/mcp_client.py": 1,
        "tools/queries/tool_servers.py": 1,
    }
