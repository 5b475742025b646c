"""Ways out, corpora and the end of a secret, for programs (R-API-2, R-TOOL-2, R-TOOL-19)."""

from typing import Any

from orchestrator.tools.queries.tools import tool_now
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.api.program import Program, pointers, program, refusal
from tests.factories.world import World
from tests.proves import proves

DOCUMENT = {"corpus": "policy", "name": "returns", "title": "Returns", "text": "Within 30 days."}


@proves("R-TOOL-2", part="the web list by API")
def test_a_program_sets_the_web_list_and_new_runs_are_pinned_to_it(admin: Program, world: World) -> None:
    assert admin.get("/outside/web").json()["allow"] == []
    body = {"allow": ["https://Docs.example/*"], "reason": "Ours"}
    asked = admin.send("put", "/outside/web", body, headers={"If-Match": '"0"'})
    assert (asked.status_code, asked.json()["kind"]) == (202, "web")
    second = program(world.id, Role.ADMIN)
    told = second.post(f"/tool-proposals/{asked.json()['id']}/agree", {"reason": "Seen it"})
    assert (told.status_code, told.json()["version"]) == (200, 1)
    assert told.json()["allow"] == ["https://docs.example/*"]
    with tenant_transaction(world.id):
        egress = tool_now(world.id, "web.fetch").spec.egress
    assert egress is not None
    assert egress.allow == ("https://docs.example/*",)
    late = admin.send("put", "/outside/web", body, headers={"If-Match": '"0"'})
    assert refusal(late) == (412, "stale")
    wrong = admin.send("put", "/outside/web", {**body, "allow": ["https://a.example", "ftp://b.example"]})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/allow/1"])


def agreed(admin: Program, second: Program, kind: str, body: dict[str, Any]) -> Any:
    """What reaches further, asked for by one and agreed to by another."""
    asked = admin.send("put", f"/outside/{kind}", {**body, "reason": "Ours"})
    assert (asked.status_code, asked.json()["kind"]) == (202, kind)
    return second.post(f"/tool-proposals/{asked.json()['id']}/agree", {"reason": "Seen it"})


@proves("R-TOOL-4", part="wider databases and mail by API")
def test_databases_and_the_mail_server_are_said_in_versions(admin: Program, world: World) -> None:
    second = program(world.id, Role.ADMIN)
    books = {"name": "books", "host": "203.0.114.7", "database": "books", "reader": "books"}
    told = agreed(admin, second, "databases", {"databases": [books]})
    assert (told.status_code, told.json()) == (200, admin.get("/outside/databases").json())
    assert admin.get("/outside/databases").json()["databases"][0]["port"] == 5432
    same = admin.send("put", "/outside/databases", {"databases": [books], "reason": "Ours"})
    assert (same.status_code, same["ETag"]) == (200, '"1"')
    twice = admin.send("put", "/outside/databases", {"databases": [books, books], "reason": "x"})
    assert (twice.status_code, pointers(twice)) == (400, ["/databases/1/name"])
    assert admin.get("/outside/mail").json()["server"] is None
    mail = {"sender": "agent@house.example", "host": "203.0.114.8", "domains": ["house.example"]}
    sent = agreed(admin, second, "mail", {"server": mail})
    assert (sent.status_code, sent.json()) == (200, admin.get("/outside/mail").json())
    assert admin.get("/outside/mail").json()["server"]["tls"] == "starttls"
    bad = admin.send("put", "/outside/mail", {"server": {**mail, "sender": "nobody"}, "reason": "x"})
    assert (bad.status_code, pointers(bad)) == (400, ["/server/sender"])


@proves("R-TOOL-19", part="corpora by API")
def test_documents_are_put_read_and_taken_out(admin: Program) -> None:
    put = admin.post("/corpora", DOCUMENT)
    assert (put.status_code, put.json()["version"]) == (201, 1)
    assert admin.post("/corpora", {**DOCUMENT, "text": "Within 14 days."}).json()["version"] == 2
    assert [row["documents"] for row in admin.get("/corpora").json()["results"]] == [1]
    assert admin.get("/corpora/policy").json()["results"][0]["name"] == "returns"
    assert admin.get("/corpora/policy/documents/returns").json()["text"] == "Within 14 days."
    assert admin.post("/corpora/policy/documents/returns/remove", {"reason": "Old"}).status_code == 204
    assert refusal(admin.get("/corpora/policy/documents/returns"))[0] == 404
    assert refusal(admin.get("/corpora/policy"))[0] == 404
    wrong = admin.post("/corpora", {**DOCUMENT, "corpus": "../x"})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/corpus"])


@proves("R-SEC-4", part="a secret is taken out of use")
def test_a_secret_is_revoked_once(admin: Program) -> None:
    kept = {"name": "crm", "value": "tok-1", "origin": "https://crm.example", "reason": "We need it"}
    assert admin.post("/secrets", kept).status_code == 201
    assert admin.post("/secrets/crm/revoke", {"reason": "Leaked"}).status_code == 204
    assert admin.get("/secrets").json()["results"] == []
    assert refusal(admin.post("/secrets/crm/revoke", {"reason": "Leaked"})) == (404, "not-found")
