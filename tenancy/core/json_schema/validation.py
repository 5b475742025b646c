"""JSON Schema validators that read nothing but the schema they were given."""

from collections.abc import Mapping
from typing import Any, NoReturn

import jsonschema_rs

from tenancy.core.json_schema.cost import cost_fault


def validator_of(schema: Mapping[str, Any], *, mask: str | None = None) -> jsonschema_rs.Validator:
    """A validator for a schema; with a `mask` its sentences name that instead of the value.

    Left alone the library opens what `$ref` names, a URL or a file of this machine, and schemas come from
    models, admins and strangers' servers. Raises jsonschema_rs.ValidationError for what is no schema, or
    refers elsewhere.
    """
    return jsonschema_rs.validator_for(dict(schema), mask=mask, retriever=_reject_external_reference)


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """Why a schema cannot be used: it is none, refers to something that is not in it, or costs too much. None
    where it can (R-SEC-11)."""
    try:
        validator_of(schema)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        return str(error).partition("\n")[0][:200]
    return cost_fault(schema)


def _reject_external_reference(uri: str) -> NoReturn:
    message = f"a schema may not refer to another document: {uri[:100]}"
    raise ValueError(message)
