"""Requests drawn from the OpenAPI document, good ones and bad ones, and every answer held against it."""

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django.fixtures import Settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok

from tenancy.core.roles import Role
from tests.doors.api.doors import things_of
from tests.doors.api.program import program
from tests.factories.world import World
from tests.proves import proves

pytestmark = pytest.mark.slow

EXAMPLES = 20
NARROW_EXAMPLES = 3
# What is malformed may be refused for its length, before anybody reads it.
REFUSED = [400, 404, 409, 413, 415, 422, 428]
HELD = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


def operations() -> dict[str, Any]:
    """The operations of the document, by their ids."""
    load_all_checks()
    generator: Any = SchemaGenerator
    document = generator().get_schema(request=None, public=True)
    # An address may carry more than we know, such as what a proxy adds; a body may not.
    config = SchemathesisConfig.from_dict(
        {
            "generation": {"allow-extra-parameters": False, "with-security-parameters": False},
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSED}},
        }
    )
    schema = schemathesis.openapi.from_dict(document, config=config)
    schema.app = get_wsgi_application()
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return {operation.definition.raw["operationId"]: operation for operation in found}


OPERATIONS = operations()
CASES = [
    (name, mode)
    for name, operation in sorted(OPERATIONS.items())
    for mode in GenerationMode
    # A path of any text, and nothing else, cannot be malformed: what is not there is 404.
    if mode.is_positive or operation.query or operation.body
]


@proves("R-API-1", part="the document is exact")
@pytest.mark.parametrize(("name", "mode"), CASES, ids=lambda part: getattr(part, "value", part))
def test_every_answer_is_one_the_document_knows(
    world: World, settings: Settings, name: str, mode: GenerationMode
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    operation, things = OPERATIONS[name], things_of(world)
    key = {"Authorization": f"Bearer {program(world.id, Role.ADMIN).clear}"}
    checks = CHECKS.get_by_names([*HELD, *(["negative_data_rejection"] if mode.is_negative else [])])

    @hypothesis_settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def held(case: Any, *, real: bool) -> None:
        if real:
            case.path_parameters |= {part: things[part] for part in case.path_parameters if part in things}
            if name == "submit_task" and mode.is_positive:
                case.body = {"goal": case.body["goal"], "workflow": "tool-loop"}
        case.call_and_validate(headers=key, checks=checks)

    held()


@proves("R-API-1", part="the document is exact for narrow keys")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("role", [Role.CLIENT, Role.REVIEWER])
def test_every_answer_to_a_narrow_key_is_one_the_document_knows(
    world: World, settings: Settings, role: Role
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    things = things_of(world)
    key = {"Authorization": f"Bearer {program(world.id, role).clear}"}
    checks = CHECKS.get_by_names(list(HELD))
    for operation in OPERATIONS.values():

        @hypothesis_settings(
            max_examples=NARROW_EXAMPLES, deadline=None, database=None, derandomize=True,
            phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        def held(case: Any) -> None:
            case.path_parameters |= {part: things[part] for part in case.path_parameters if part in things}
            case.call_and_validate(headers=key, checks=checks)

        held()


@proves("R-API-1", part="an ended run as the document has it")
def test_what_an_ended_run_shows_is_as_the_document_has_it(world: World, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    assert world.drive(run).terminal_code == "SUCCESS"
    key = {"Authorization": f"Bearer {program(world.id, Role.ADMIN).clear}"}
    checks = CHECKS.get_by_names(list(HELD))
    for name in ("get_run", "get_run_result", "list_run_events", "export_run_trace"):
        case = OPERATIONS[name].Case(path_parameters={"run_id": str(run)})
        assert case.call_and_validate(headers=key, checks=checks).status_code == 200
    replay = OPERATIONS["replay_run"].Case(
        path_parameters={"run_id": str(run)}, body={}, media_type="application/json"
    )
    assert replay.call_and_validate(headers=key, checks=checks).json()["matches"]
