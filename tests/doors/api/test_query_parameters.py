"""No address of the API takes a query parameter that it does not know: a misspelt filter is no filter."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator

from tenancy.core.roles import Role
from tenancy.rest.api_view import APIView, query_parameters
from tests.doors.api.bodies import BODIES
from tests.doors.api.doors import DOORS, things_of
from tests.doors.api.program import Program, program, refusal
from tests.doors.api.test_rights import NAMES, path_of
from tests.factories.world import World
from tests.proves import proves

ADDRESSES = sorted(door for door in DOORS if door[1].startswith("api/v1/"))


@proves("R-SEC-7", part="unknown query parameters")
def test_misspelt_filter_is_refused_by_name_with_what_is_known(world: World, admin: Program) -> None:
    answer = admin.get("/runs?statuss=failed")
    assert refusal(answer) == (400, "parameter-unknown")
    assert "statuss" in answer.json()["detail"]
    assert answer.json()["data"]["parameter"] == "statuss"
    assert {"status", "workflow", "cursor", "limit"} <= set(answer.json()["data"]["known"])


@proves("R-SEC-7", part="repeated query parameters")
def test_filter_given_twice_is_refused(world: World, admin: Program) -> None:
    answer = admin.get("/runs?status=failed&status=completed")
    assert refusal(answer) == (400, "parameter-repeated")


def test_unknown_parameter_without_a_key_is_still_401(world: World) -> None:
    assert refusal(Program().get("/runs?statuss=failed"))[0] == 401


def test_head_takes_what_get_takes(world: World, admin: Program) -> None:
    headers = admin.headers({})
    assert admin.client.head("/api/v1/runs?status=failed", headers=headers).status_code == 200
    assert admin.client.head("/api/v1/runs?statuss=failed", headers=headers).status_code == 400


@proves("R-SEC-7", part="unknown query parameters at every address")
def test_every_address_refuses_a_parameter_nobody_declared(world: World) -> None:
    who, things = program(world.id, Role.ADMIN), things_of(world)
    others = {role: program(world.id, role) for role in (Role.CLIENT, Role.REVIEWER, Role.OPERATOR)}
    for method, address in ADDRESSES:
        path = path_of(address, things) + "?nobody_knows_this=1"
        answers = [one.send(method, path, BODIES.get(address)) for one in (who, *others.values())]
        said = {refusal(answer) for answer in answers}
        assert (400, "parameter-unknown") in said, (method, address)
        assert said <= {(400, "parameter-unknown"), (403, "scope-missing")}, (method, address, said)


@pytest.mark.parametrize(("method", "address"), ADDRESSES)
def test_every_view_of_the_api_knows_its_parameters_as_the_document_does(method: str, address: str) -> None:
    view: Any = resolve(path_of(address, NAMES)).func
    assert issubclass(view.view_class, APIView)
    operation = DOCUMENT["paths"]["/" + address][method]
    documented = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    assert query_parameters(view.view_class, method) == documented


DOCUMENT: Any = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
