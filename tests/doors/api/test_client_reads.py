"""What the role client does not read: where the tenant's tools and models are, and the names of their secrets
(R-SEC-11)."""

import pytest

from tenancy.core.roles import Role
from tests.doors.api.program import program, refusal
from tests.doors.pages.browsers import browser
from tests.doubles.crm import Crm
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import declare, find
from tests.shell.orchestrator.test_http_tools import world as world

DOORS = ("/destinations/databases", "/destinations/mail", "/mcp-servers", "/mcp-servers/x", "/model-profiles",
         "/model-profiles/x")  # fmt: skip
PAGES = ("/destinations", "/models", "/mcp-servers", "/mcp-servers/x", "/http-tools")


@proves("R-SEC-11", part="a client reads no addresses")
@pytest.mark.parametrize("door", DOORS)
def test_a_client_key_does_not_read_where_the_tenant_reaches(world: World, door: str) -> None:
    assert refusal(program(world.id, Role.CLIENT).get(door)) == (403, "scope-missing")
    assert program(world.id, Role.AUDITOR).get(door).status_code in (200, 404)


@proves("R-SEC-11", part="a client reads the tools that it may use, without their addresses")
def test_a_client_reads_a_tool_without_its_address_and_secret(world: World, crm: Crm) -> None:
    declare(world, find(crm))
    client, auditor = program(world.id, Role.CLIENT), program(world.id, Role.AUDITOR)
    said = client.get("/tools/crm.find")
    assert said.json()["definition"]["remote"] is None
    assert said.json()["input_schema"]["required"] == ["person"]
    assert crm.origin not in said.content.decode()
    assert auditor.get("/tools/crm.find").json()["definition"]["remote"]["origin"] == crm.origin
    assert "crm.find" in client.get("/tools").content.decode()
    assert crm.origin not in client.get("/tools").content.decode()


@proves("R-SEC-11", part="a client sees no addresses on the pages")
def test_a_client_sees_no_address_on_the_pages(world: World, crm: Crm) -> None:
    declare(world, find(crm))
    looking = browser(make_somebody(world.house.tenant, Role.CLIENT))
    for page in PAGES:
        assert looking.get(page).status_code == 403, page
    for page in ("/tools", "/tools/crm.find"):
        told = looking.get(page)
        assert told.status_code == 200
        assert crm.place not in told.content.decode(), page
        assert "X-Token" not in told.content.decode(), page
