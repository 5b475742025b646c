"""Arguments as a model writes them, made into the one form that is shown, hashed, approved and sent (G2,
M6)."""

from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from orchestrator.core.common.frozen_model import FrozenModel
from tenancy.core.json_reading import read_json
from tenancy.core.json_schema.cost import ApplicationCounter, short_verdict
from tenancy.core.json_schema.validation import validator_of
from traces.core.canonical import canonical_outside
from traces.core.redaction import marked_places
from traces.core.sealed_references import holds_reference

MAX_BYTES = 65_536
MAX_DEPTH = 32


class MalformedArguments(FrozenModel):
    """Why the text is no argument object; `detail` goes to the model as it is."""

    detail: str
    missing: tuple[str, ...] = ()


class Arguments(FrozenModel):
    """The normalised bytes and the value they stand for."""

    body: bytes
    value: dict[str, Any]


def parse_arguments(raw: bytes, *, repeated: bool = False) -> Arguments | MalformedArguments:
    """Read one JSON object, unwrapping one layer of JSON-in-a-string; bounded in size and depth.

    A member that is given twice is a fault, unless `repeated`: then the last one counts.
    """
    if len(raw) > MAX_BYTES:
        return MalformedArguments(detail=f"the arguments are larger than {MAX_BYTES} bytes")
    try:
        read = orjson.loads if repeated else read_json
        value = read(raw or b"{}")
        if isinstance(value, str):
            value = read(value)
    except orjson.JSONDecodeError as error:
        return MalformedArguments(detail=f"the arguments are not JSON: {error}"[:300])
    if not isinstance(value, dict):
        return MalformedArguments(detail="the arguments must be one JSON object")
    if _measure_nesting_depth(value) > MAX_DEPTH:
        return MalformedArguments(detail=f"the arguments are nested deeper than {MAX_DEPTH}")
    try:
        return Arguments(body=canonical_outside(value), value=value)
    except ValueError as error:
        return MalformedArguments(detail=f"the arguments cannot be kept exactly: {error}"[:300])


def validate_no_redactions(value: Any) -> MalformedArguments | None:
    """Why arguments cannot be sent as they stand: a value of theirs was taken out when they were kept, and
    its mark is no value."""
    places = marked_places(value)
    if not places:
        return None
    named = ", ".join(place[:80] for place in places[:8])
    return MalformedArguments(
        detail=f"the mark of a redaction stands in place of a value at {named}; "
        "the value was not kept, and a mark is never sent as one"
    )


def _measure_nesting_depth(value: Any) -> int:
    """Nesting depth, measured without recursion: hostile input must not exhaust the stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return depth
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def validate_against_schema(schema: dict[str, Any], value: Any) -> MalformedArguments | None:
    """Check a value against a JSON Schema; every fault with its pointer, bounded. A sealed reference fits
    anywhere: what it stands for is checked when it is opened."""
    judge = _judge(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))
    if (short := short_verdict(judge.validator, judge.growth, value)) is not None:
        return MalformedArguments(detail=f"/: {short}") if short else None
    errors = [
        error
        for error in judge.validator.iter_errors(value)
        if not (isinstance(error.instance, str) and holds_reference(error.instance))
    ]
    if not errors:
        return None
    lines = [
        f"{'/'.join(['', *map(str, error.instance_path)]) or '/'}: {error.message}"[:300]
        for error in errors[:8]
    ]
    required = schema.get("required", ())
    missing = tuple(name for name in required if isinstance(value, dict) and name not in value)
    return MalformedArguments(detail="; ".join(lines), missing=missing)


def find_schema_mismatches(schema: dict[str, Any], arguments: bytes) -> tuple[str, ...]:
    """The places, as pointers, at which arguments do not fit a schema; nothing of what stands there."""
    judge, value = _judge(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)), orjson.loads(arguments)
    if (short := short_verdict(judge.validator, judge.growth, value)) is not None:
        return ("/",) if short else ()
    return tuple(
        "/".join(["", *map(str, error.instance_path)]) or "/" for error in judge.validator.iter_errors(value)
    )


class _Judge(NamedTuple):
    validator: jsonschema_rs.Validator
    growth: ApplicationCounter


@lru_cache(maxsize=512)
def _judge(schema: bytes) -> _Judge:
    read = orjson.loads(schema)
    return _Judge(validator_of(read), ApplicationCounter(read))
