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

from tenancy.core.roles import Role
from tests.doors.api.doors import things_of
from tests.doors.api.program import program
from tests.factories.world import World
from tests.proves import proves

EXAMPLES = 12
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
    document = SchemaGenerator().get_schema(request=None, public=True)
    schema = schemathesis.openapi.from_dict(document)
    schema.app = get_wsgi_application()
    found = (result.ok() for result in schema.get_all_operations())
    return {operation.definition.raw["operationId"]: operation for operation in found}


OPERATIONS = operations()


@proves("R-API-1", part="the document is exact")
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_answer_is_one_the_document_knows(
    world: World, settings: Settings, name: str, mode: GenerationMode
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    operation, things = OPERATIONS[name], things_of(world)
    key = {"Authorization": f"Bearer {program(world.id, Role.ADMIN).clear}"}
    checks = CHECKS.get_by_names(list(HELD + (("negative_data_rejection",) if mode.is_negative else ())))

    @hypothesis_settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def held(case: Any, *, real: bool) -> None:
        if real:
            case.path_parameters |= {part: things[part] for part in case.path_parameters if part in things}
        case.call_and_validate(headers=key, checks=checks)

    held()
