"""The OpenAPI document: clean, whole, and saying what clients need."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import resolve

from config.api.openapi import VISIBLE
from tenancy.core.roles import Role
from tests.conftest import House
from tests.doors.api.bodies import BODIES
from tests.doors.api.doors import DOORS
from tests.doors.api.platform_doors import PLATFORM_DOORS
from tests.doors.api.program import PROBLEM, Program, program, refusal
from tests.proves import proves

# Making it takes seconds, and it is the same for everybody.
KEPT: dict[str, Any] = {}


@pytest.fixture
def document(house: House) -> dict[str, Any]:
    """What /api/schema answers to any key."""
    if KEPT:
        return KEPT
    answer = program(house.tenant.id, Role.CLIENT).get("/api/schema")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/vnd.oai.openapi+json")
    KEPT.update(answer.json())
    return KEPT


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every operation by (method, path without the first slash)."""
    return {
        (method, path.lstrip("/")): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


@proves("R-API-1", part="OpenAPI 3.1, no warning")
def test_the_document_is_made_without_a_warning_and_validates(tmp_path: Path) -> None:
    call_command("spectacular", fail_on_warn=True, validate=True, file=str(tmp_path / "schema.yaml"))


@proves("R-SEC-11", part="the API document for a key or a session")
def test_the_document_is_for_keys_and_for_people_who_are_signed_in(house: House) -> None:
    assert refusal(Program().get("/api/schema"))[0] == 401
    assert refusal(Program(clear="nonsense").get("/api/schema"))[0] == 401
    browser = Client()
    browser.force_login(house.people.auditor.person)
    assert browser.get("/api/schema").status_code == 200


@proves("R-API-1", part="OpenAPI 3.1")
def test_the_document_says_its_version(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")


@proves("R-API-2", part="every path is documented")
def test_the_document_has_every_door_of_the_api(document: dict[str, Any]) -> None:
    assert set(operations(document)) == {
        door for door in [*DOORS, *PLATFORM_DOORS] if door[1].startswith("api/v1/")
    }


def test_generated_clients_get_one_name_for_each_operation(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(document).values()]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() and name.islower() for name in names)


@proves("R-API-1", part="keys in the document")
def test_every_operation_asks_for_the_key(document: dict[str, Any]) -> None:
    schemes = document["components"]["securitySchemes"]
    assert {name: (one["type"], one["scheme"]) for name, one in schemes.items()} == {
        "apiKey": ("http", "bearer")
    }
    assert all(operation["security"] == [{"apiKey": []}] for operation in operations(document).values())


@proves("R-API-1", part="refusals in the document")
def test_every_operation_documents_its_refusals_as_problems(document: dict[str, Any]) -> None:
    for (method, path), operation in operations(document).items():
        refusals = {status: said for status, said in operation["responses"].items() if status >= "400"}
        asked = {"400", "401", "403"} | ({"404"} if "{" in path else set())
        assert asked | ({"409", "413", "415", "422"} if method == "post" else set()) <= set(refusals), path
        for said in refusals.values():
            assert said["content"] == {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}


@proves("R-API-1", part="Idempotency-Key in the document")
def test_every_post_takes_an_idempotency_key(document: dict[str, Any]) -> None:
    for (method, path), operation in operations(document).items():
        headers = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "header"}
        assert ("Idempotency-Key" in headers) == (method == "post"), path


def test_every_post_reads_the_key_that_the_document_offers() -> None:
    takers = (
        *("post_once(request", "post_once_about(request", "_secret_once(request", "key_of(request"),
        *("_link_once(request", "_apply_person_change(request"),
    )
    for method, route in [*DOORS, *PLATFORM_DOORS]:
        if method == "post":
            view: Any = resolve("/" + route.replace("{", "").replace("}", "")).func
            source = "".join(inspect.getsource(view.view_class.post).split())
            assert any(taker in source for taker in takers), route


@proves("R-API-1", part="headers of responses in the document")
def test_the_document_says_which_headers_come_back(document: dict[str, Any]) -> None:
    known = operations(document)
    run = known["get", "api/v1/runs/{run_id}"]["responses"]
    assert all(run[status]["headers"]["ETag"]["required"] for status in ("200", "304"))
    accepted = known["post", "api/v1/tasks"]["responses"]
    assert "Idempotent-Replay" in accepted["202"]["headers"]


@proves("R-API-1", part="closed inputs in the document")
def test_every_body_says_that_it_takes_no_other_field(document: dict[str, Any]) -> None:
    shapes = document["components"]["schemas"]
    bodies = {name for name in shapes if name.endswith("Request")}
    assert "GoalFieldRequest" in bodies
    # One body or another: each of them is closed.
    either = {name for name in bodies if shapes[name].keys() == {"oneOf"}}
    named = {one["$ref"].rpartition("/")[2] for name in either for one in shapes[name]["oneOf"]}
    assert either == {"DeclaredToolRequest"}
    assert named <= bodies - either
    assert {n for n in bodies - either if shapes[n].get("additionalProperties") is not False} == set()


@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_nothing_in_the_document_refuses_null_by_allowing_it_twice(
    document: dict[str, Any], key: str
) -> None:
    assert f'"{key}": [{{}}, {{"type": "null"}}]' not in json.dumps(document)


@proves("R-API-1", part="what the server refuses the document refuses")
def test_the_document_bounds_what_the_server_bounds(document: dict[str, Any]) -> None:
    shapes = document["components"]["schemas"]

    def member(shape: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = shapes[shape]["properties"][name]
        return found

    assert member("ServerBodyRequest", "slug")["pattern"].startswith("^[a-z]")
    assert member("DocumentBodyRequest", "corpus")["pattern"].startswith("^[a-z]")
    kind = json.dumps(member("ServerBodyRequest", "kind"))
    named = [shapes[name].get("enum") for name in shapes if f'/{name}"' in kind]
    assert ["http", "stdio"] in [*named, member("ServerBodyRequest", "kind").get("enum")]
    assert "reason" in shapes["ModelChangeRequest"]["required"]
    assert [one["required"] for one in shapes["WorkflowBodyRequest"]["oneOf"]] == [["document"], ["yaml"]]
    assert {"required": ["provider", "model"], "not": {"anyOf": [{"required": ["tool"]}]}} in shapes[
        "CorrectionBodyRequest"
    ]["oneOf"]
    assert member("ReviewAnswerBodyRequest", "note")["pattern"] == VISIBLE
    assert member("UndoWindowBodyRequest", "reason")["pattern"] == VISIBLE
    price = member("PriceBodyRequest", "request_usd")
    assert price["oneOf"][1]["maximum"] == 10_000
    assert "404" in operations(document)["post", "api/v1/prices/corrections"]["responses"]


@proves("R-API-1", part="whole numbers")
@pytest.mark.parametrize(
    ("given", "status"),
    [(5, 201), (5.0, 201), ("5", 201), (5.5, 400), ("5.0e0", 400), (True, 400), ("", 400)],
)
def test_number_without_a_fraction_is_whole_however_it_is_written(
    admin: Program, given: float | str, status: int
) -> None:
    body = {**BODIES["api/v1/prices"], "input_usd_per_mtok": given}
    assert admin.post("/prices", body).status_code == status
