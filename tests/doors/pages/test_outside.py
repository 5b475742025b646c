"""The pages of where tools go, of documents, of tools without code, and of the end of a secret (R-TOOL-19,
R-TOOL-20, R-UI-5).
"""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from orchestrator.knowledge.actions.corpora import NewDocument, put_document
from orchestrator.tools.queries.destinations import get_allowed_databases, mail_server, web_rules
from orchestrator.tools.queries.tools import tool_now
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import keep_secret, secrets_of
from tests.doors.pages.forms import form_with, forms_of
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves

OUTSIDE, CORPORA, HTTP = "/outside", "/corpora", "/http-tools"
BOOKS = {"name": "books", "host": "203.0.114.7", "database": "books", "reader": "books", "reason": "Ours"}
FIND = {
    "name": "crm.find", "description": "Find a person.", "url": "https://8.8.8.8/people/{person}",
    "inputs": '{"type": "object", "properties": {"person": {"type": "string"}}, "required": ["person"]}',
    "risk": "read_only", "reversibility": "pure", "recovery": "read_only", "reason": "We need it",
}  # fmt: skip
API = """
openapi: 3.1.0
servers: [{url: "https://8.8.8.8/v1"}]
paths:
  /notes:
    get:
      operationId: listNotes
      summary: Notes of a person.
      parameters: [{name: person, in: query, required: true, schema: {type: string}}]
      responses: {"200": {content: {application/json: {schema: {type: object}}}}}
"""


@proves("R-TOOL-2", part="the web list on its page")
def test_an_admin_says_where_tools_go(admin: Client, world: World) -> None:
    sent = form_with(admin.get(OUTSIDE), "web").send(
        admin, "web", allow="https://docs.example/*\nhttps://api.example/search?*", reason="Ours"
    )
    assert sent.status_code == 302
    assert form_with(admin.get(OUTSIDE), "databases").send(admin, "databases", **BOOKS).status_code == 302
    mail = {"sender": "agent@house.example", "domains": "House.example\n", "reason": "Ours"}
    assert form_with(admin.get(OUTSIDE), "mail").send(admin, "mail", **mail).status_code == 302
    page = text(admin.get(OUTSIDE))
    for words in ("https://api.example/search?*", "postgresql://203.0.114.7:5432/books", "house.example"):
        assert words in page
    with tenant_transaction(world.id):
        assert len(web_rules().allow) == 2
        server = mail_server()
    assert server is not None
    assert server.domains == ("house.example",)
    assert form_with(admin.get(OUTSIDE), "forget").send(admin, "forget", reason="Gone").status_code == 302
    with tenant_transaction(world.id):
        assert get_allowed_databases().databases == ()


def test_taking_out_what_hides_the_operators_own_waits_for_a_second_person(
    admin: Client, world: World, settings: Settings
) -> None:
    form_with(admin.get(OUTSIDE), "databases").send(admin, "databases", **BOOKS)
    settings.INTERLOCK_DATABASES = {"books": {"reader": "postgresql://reader:x@203.0.114.7/books"}}
    make_somebody(world.house.tenant, Role.ADMIN)
    form = form_with(admin.get(OUTSIDE), "forget")
    assert form.send(admin, "forget", reason="Gone")["Location"] == "/tool-proposals"
    again = form.send(admin, "forget", reason="Gone")
    assert (again.status_code, "waits for a second person" in text(again)) == (409, True)
    with tenant_transaction(world.id):
        assert [one.name for one in get_allowed_databases().databases] == ["books"]


@pytest.mark.parametrize(
    ("act", "typed", "words"),
    [
        ("web", {"allow": "https://*.example/"}, "no host"), ("web", {"version": "7"}, "in the meantime"),
        ("databases", {**BOOKS, "host": "169.254.169.254"}, "never be reached"),
        ("mail", {"sender": "nobody"}, "pattern"), ("web", {"reason": " "}, "required"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_at_its_field_and_nothing_changes(
    admin: Client, world: World, act: str, typed: dict[str, str], words: str
) -> None:
    given = {"reason": "Ours", **typed}
    answer = form_with(admin.get(OUTSIDE), act).send(admin, act, **given)
    assert answer.status_code == 422
    assert words in text(answer)
    with tenant_transaction(world.id):
        assert (web_rules().allow, get_allowed_databases().databases, mail_server()) == ((), (), None)


@pytest.mark.parametrize("address", [OUTSIDE, CORPORA, HTTP])
def test_whoever_is_no_admin_looks_and_changes_nothing(world: World, address: str) -> None:
    viewer = at(world.people.approver)
    page = viewer.get(address)
    assert "needs the role admin" in text(page)
    assert all("reason" not in form.fields for form in forms_of(page))
    assert viewer.post(address, {"act": "web", "reason": "x"}).status_code == 403


@proves("R-TOOL-20", part="declared on a page")
def test_a_tool_is_declared_changed_and_disabled_without_code(admin: Client, world: World) -> None:
    keep_secret(world.id, "crm", "tok", origin="https://8.8.8.8", by=None)
    form = form_with(admin.get(HTTP), "declare")
    sent = form.send(admin, "declare", **FIND, secret="crm", equal="/result/name=/arguments/person")
    assert sent["Location"] == "/tools/crm.find", text(sent)
    assert "crm.find" in text(admin.get(HTTP))
    again = form_with(admin.get(f"{HTTP}?like=crm.find"), "declare")
    assert again.fields["url"] == FIND["url"]
    assert again.send(admin, "declare", timeout_ms="9000", reason="Slower").status_code == 302
    with tenant_transaction(world.id):
        spec = tool_now(world.id, "crm.find").spec
    assert (spec.version, spec.timeout_ms, spec.secrets) == (2, 9_000, ("crm",))
    assert spec.verifier is not None
    assert spec.verifier.equal == {"/result/name": "/arguments/person"}
    switched = form_with(admin.get("/tools/crm.find"), "off").send(admin, "off", reason="Not now")
    assert switched.status_code == 302
    assert "Disabled" in text(admin.get(HTTP))


@proves("R-TOOL-3", part="the way back on a page")
def test_a_change_that_can_be_taken_back_says_by_which_tool(admin: Client, world: World) -> None:
    form = form_with(admin.get(HTTP), "declare")
    change = {**FIND, "name": "crm.note", "method": "POST", "risk": "network", "reversibility": "compensable",
              "recovery": "none"}  # fmt: skip
    refused = form.send(admin, "declare", **change)
    assert refused.status_code == 422
    assert "names the tool that takes it back" in text(refused)
    back = {"back_tool": "crm.forget", "back_wanted": "The note is gone.", "back_arguments": "id=/result/id"}
    assert "One argument=pointer a line." in text(
        form.send(admin, "declare", **change, **{**back, "back_arguments": "id"})
    )
    word = {"error_means_no_effect": "on"}
    assert form.send(admin, "declare", **change, **back, **word)["Location"] == "/tools/crm.note"
    assert "an error means that it changed nothing" in text(admin.get("/tools/crm.note"))
    with tenant_transaction(world.id):
        spec = tool_now(world.id, "crm.note").spec
    found = spec.compensation
    assert spec.error_means_no_effect
    assert found is not None
    assert (found.tool, found.wanted, found.arguments) == (
        "crm.forget",
        "The note is gone.",
        {"id": "/result/id"},
    )
    again = form_with(admin.get(f"{HTTP}?like=crm.note"), "declare").fields
    assert {name: again[name] for name in (*back, *word)} == {**back, **word}


@proves("R-TOOL-20", part="an OpenAPI operation on a page")
def test_an_operation_of_a_document_becomes_a_tool(admin: Client, world: World) -> None:
    typed = {**FIND, "name": "crm.notes", "description": "", "url": "", "openapi": API}
    form = form_with(admin.get(HTTP), "declare")
    assert form.send(admin, "declare", **typed, operation="listNotes").status_code == 302
    with tenant_transaction(world.id):
        spec = tool_now(world.id, "crm.notes").spec
    assert spec.description == "Notes of a person."
    assert spec.input_schema["required"] == ["person"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"url": "http://127.0.0.1:1/x"}, "not public"),
        ({"description": " "}, "Say what it does"), ({"inputs": "nonsense"}, "no JSON"),
        ({"openapi": "a: b", "operation": "x"}, "OpenAPI 3"), ({"openapi": "[", "operation": "x"}, "neither"),
        ({"query": "person"}, "parameter=argument"), ({"risk": ""}, "required"),
        ({"name": "find"}, "pattern"), ({"reversibility": "irreversible"}, "not read_only"),
        ({"openapi": API, "operation": "y"}, "no operation"),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_stand_is_refused_with_what_was_typed(
    admin: Client, typed: dict[str, str], words: str
) -> None:
    answer = form_with(admin.get(HTTP), "declare").send(admin, "declare", **{**FIND, **typed})
    assert answer.status_code == 422
    assert words in text(answer)
    kept = {**FIND, **typed}["description"].strip()
    assert form_with(answer, "declare").fields["description"].strip() == kept


@proves("R-TOOL-19", part="corpora on their pages")
def test_documents_are_put_searched_and_taken_out_on_the_pages(admin: Client) -> None:
    file = SimpleUploadedFile("a.html", b"<p>Within 30 days.</p><p hidden>obey</p>", "text/html")
    given = {"corpus": "policy", "name": "returns", "title": "Returns", "language": "english"}
    sent = admin.post(CORPORA, {**given, "file": file})
    assert sent["Location"] == "/corpora/policy/returns"
    page = text(admin.get("/corpora/policy/returns"))
    assert "Within 30 days." in page
    assert "obey" not in page
    assert "@1#1" in text(admin.get("/corpora/policy?q=days"))
    assert "Nothing." in text(admin.get("/corpora/policy?q=nonsense"))
    form = form_with(admin.get("/corpora/policy/returns"), "remove")
    assert form.send(admin, "remove", reason="Old").status_code == 302
    gone = text(admin.get("/corpora/policy/returns"))
    assert "was taken out" in gone
    assert "Within 30 days." in gone
    assert admin.get("/corpora/policy").status_code == 404


@pytest.mark.parametrize(
    ("typed", "words"),
    [({"corpus": "A B"}, "letter first"), ({"text": ""}, "at most"),
     ({"file": SimpleUploadedFile("a.txt", b"\xff\xfe\xff")}, "UTF-8")],
)  # fmt: skip
def test_a_document_that_is_none_is_said_to_be_none(
    admin: Client, typed: dict[str, object], words: str
) -> None:
    given = {"corpus": "policy", "name": "a", "title": "A", "language": "english", "text": "x"}
    answer = admin.post(CORPORA, {**given, **typed})
    assert answer.status_code == 422
    assert words in text(answer)


@proves("W4", part="documents")
def test_a_document_is_shown_and_never_run(admin: Client, world: World) -> None:
    new = NewDocument(corpus="odd", name="x", title="<b>T</b>", text="<script>alert(1)</script> a\u202eb")
    put_document(world.id, new, by=None)
    body = admin.get("/corpora/odd/x").content.decode() + admin.get("/corpora/odd?q=alert").content.decode()
    assert "<script>alert" not in body
    assert "<b>T</b>" not in body


@proves("R-SEC-4", part="revoking on the page")
def test_a_secret_is_revoked_with_a_reason(admin: Client, world: World) -> None:
    keep_secret(world.id, "crm", "tok", origin="https://crm.example", by=None)
    form = form_with(admin.get("/tool-servers"), "crm")
    assert form.send(admin, "crm", reason=" ").status_code == 422
    assert form.send(admin, "crm", reason="Leaked").status_code == 302
    assert secrets_of(world.id) == []
    assert form.send(admin, "crm", reason="Leaked").status_code == 404
