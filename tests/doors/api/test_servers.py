"""Tool servers, tools without code, places and secrets for programs (R-API-2, R-TOOL-20, R-TOOL-21)."""

from typing import Any

import pytest

from tenancy.core.roles import Role
from tests.doors.api.program import Program, pointers, program, refusal
from tests.doubles.mcp_server import ToolServer
from tests.doubles.mcp_server import tool_server as tool_server
from tests.doubles.mcp_server import tool_server_process as tool_server_process
from tests.factories.servers import connect, offered
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

READS = {"risk": "read_only", "reversibility": "pure", "recovery": "read_only"}


@pytest.fixture
def admin(world: World) -> Program:
    """May do everything, for the one person who administers."""
    return program(world.id, Role.ADMIN, owner=world.people.admin.person)


@proves("P13", part="a NUL in a list")
@pytest.mark.parametrize("changed", [{"name": "sa\0y"}, {"description": "Says\0 it."}])
def test_a_list_with_a_nul_is_looked_at(
    admin: Program, world: World, tool_server: ToolServer, changed: dict[str, str]
) -> None:
    connect(world.id, tool_server)
    tool_server.tell(changed={"say": changed})
    first, second = (admin.post("/mcp-servers/shop/refresh", {"reason": ""}, once="one") for _ in range(2))
    assert (first.status_code, second.json()) == (200, first.json())


@proves("R-TOOL-21", part="API")
def test_a_program_adds_looks_and_admits(admin: Program, tool_server: ToolServer) -> None:
    body = {"slug": "shop", "kind": "http", "address": tool_server.url, "reason": "We need it"}
    assert refusal(admin.post("/mcp-servers", body)) == (422, "egress-refused")
    placed = admin.send("put", "/private-places", {"places": [tool_server.place], "reason": "Ours"})
    assert (placed.status_code, placed["ETag"]) == (200, '"1"')
    assert admin.post("/mcp-servers", body).status_code == 201
    seen = admin.post("/mcp-servers/shop/refresh", {"reason": ""}).json()
    assert seen["tools"] == {"quarantined": 4}
    say = next(one for one in seen["offered"] if one["tool"] == "say")
    asked = {"tool": "say", "seen": say["seen"], "admission": READS, "reason": "Looked at"}
    admitted = admin.post("/mcp-servers/shop/admit", asked)
    assert (admitted.status_code, admitted.json()["name"]) == (200, "shop.say")
    assert refusal(admin.post("/mcp-servers/shop/admit", {**asked, "seen": "0" * 64})) == (412, "stale")
    wrong = admin.post("/mcp-servers/shop/admit", {**asked, "admission": {**READS, "trust": "trusted"}})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/admission/trust"])
    back = admin.post("/mcp-servers/shop/quarantine", {"tool": "say", "reason": "Not sure"}).json()
    assert back["tools"] == {"quarantined": 4}
    assert refusal(admin.send("patch", "/tools/shop.say", {"enabled": True})) == (409, "quarantined")
    gone = [admin.post("/mcp-servers/shop/remove", {"reason": "Gone"}, once="gone") for _ in range(2)]
    assert [answer.status_code for answer in gone] == [200, 200]
    assert gone[1]["Idempotent-Replay"] == "true"
    assert refusal(admin.get("/mcp-servers/shop"))[0] == 404


@proves("R-TOOL-21", part="an admission below what the tool looks like, by API")
def test_what_guards_less_is_202_until_a_second_administrator_agrees(
    admin: Program, world: World, tool_server: ToolServer
) -> None:
    connect(world.id, tool_server)
    second = program(world.id, Role.ADMIN, owner=make_somebody(world.house.tenant, Role.ADMIN).person)
    seen = offered(world.id, "send_note").row.seen
    asked = {"tool": "send_note", "seen": seen, "admission": READS, "reason": "It only reads"}
    waiting = admin.post("/mcp-servers/shop/admit", asked)
    assert (waiting.status_code, waiting.json()["kind"]) == (202, "admit")
    assert "looks like network" in waiting.json()["weaker"][0]
    assert refusal(admin.get("/tools/shop.send_note"))[0] == 404
    (row,) = second.get("/change-requests").json()["results"]
    agree = f"/change-requests/{row['id']}/agree"
    assert refusal(admin.post(agree, {"reason": "Yes"})) == (403, "own-proposal")
    assert second.post(agree, {"reason": "Yes"}).json()["risk_class"] == "read_only"
    again = admin.send("patch", "/tools/shop.send_note", {"approval_policy": "never", "reason": "Too slow"})
    assert again.status_code == 202
    drop = f"/change-requests/{again.json()['id']}/drop"
    assert second.post(drop, {"reason": "No"}).status_code == 204
    assert second.get("/change-requests").json()["results"] == []


def test_a_server_that_does_not_answer_is_424(admin: Program, world: World, tool_server: ToolServer) -> None:
    connect(world.id, tool_server)
    tool_server.tell(pages="endless")
    assert refusal(admin.post("/mcp-servers/shop/refresh", {"reason": ""})) == (424, "server-unreachable")


def test_places_that_were_changed_meanwhile_are_412(admin: Program) -> None:
    body = {"places": ["a.internal:80"], "reason": "Ours"}
    assert admin.send("put", "/private-places", body, headers={"If-Match": '"0"'}).status_code == 200
    late = admin.send("put", "/private-places", {**body, "places": []}, headers={"If-Match": '"0"'})
    assert refusal(late) == (412, "stale")


@proves("R-SEC-4", part="write-only by API")
def test_a_secret_is_named_and_never_given_back(admin: Program) -> None:
    body = {"name": "crm", "value": "tok-9f8e7d", "origin": "https://crm.example", "reason": "A service"}
    kept = admin.post("/secrets", body)
    assert kept.status_code == 201
    assert b"tok-9f8e7d" not in kept.content + admin.get("/secrets").content
    assert refusal(admin.post("/secrets", body, once="")) == (400, "idempotency-key-invalid")
    wrong = admin.post("/secrets", {**body, "value": "tok\u00e9-9f8e7d"})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/value"])
    assert "9f8e7d" not in wrong.content.decode()


@proves("R-TOOL-20", part="odd documents by API")
@pytest.mark.parametrize(
    ("operation", "declared"),
    [
        ({"parameters": 7}, {}),
        ({"requestBody": {"content": "json"}}, {}),
        ({}, {"request": [1]}),
        ({}, {"request": 5}),
    ],
)
def test_an_odd_document_is_refused(
    admin: Program, operation: dict[str, Any], declared: dict[str, Any]
) -> None:
    paths = {"/a": {"get": {"operationId": "x", **operation}}}
    document = {"openapi": "3.1.0", "servers": [{"url": "https://a.example"}], "paths": paths}
    body = {"declaration": {"name": "crm.find", **declared}, "openapi": document, "operation": "x"}
    assert refusal(admin.post("/http-tools", {**body, "reason": "Ours"}))[0] in (400, 422)


@proves("R-TOOL-20", part="declared by API")
def test_a_tool_is_declared_by_an_operation_of_a_document(admin: Program) -> None:
    document: dict[str, Any] = {
        "openapi": "3.1.0", "servers": [{"url": "http://tools.internal:8443/v1"}],
        "paths": {"/people/{id}": {"get": {
            "operationId": "findPerson", "summary": "Find a person.",
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}},
        }}},
    }  # fmt: skip
    declaration = {"name": "crm.find", **READS}
    body = {
        "declaration": declaration,
        "openapi": document,
        "operation": "findPerson",
        "reason": "We need it",
    }
    assert refusal(admin.post("/http-tools", body)) == (422, "egress-refused")
    missing = admin.post("/http-tools", {"declaration": declaration, "reason": "We need it"})
    assert missing.status_code == 400
    assert "/declaration/request" in pointers(missing)
    assert refusal(admin.post("/http-tools", {**body, "operation": "none"})) == (422, "definition-refused")
