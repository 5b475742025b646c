"""What a service says, with references in place of the values that were opened for its call (M16, W8)."""

from collections.abc import Mapping
from typing import Any

import orjson

from orchestrator.gateways.tools.secret_redaction import without_secret

# A shorter value stands in too many texts by chance; it is taken out where it is all of a text or a number.
LEAST = 6


def replace_opened_values(body: bytes, opened: Mapping[str, str]) -> bytes:
    """The bytes without the values of `opened` (value to reference), in the spellings of an echo. JSON stays
    JSON: there, numbers that are such a value go too."""
    if not opened:
        return body
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _replace_in_bytes(body, opened, cut=True)
    found = _replace_in_json(value, opened)
    return body if found == value else orjson.dumps(found)


def _replace_in_json(value: Any, opened: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        if value in opened:
            return opened[value]
        return _replace_in_bytes(value.encode("utf-8", "surrogatepass"), opened).decode(
            "utf-8", "surrogatepass"
        )
    if isinstance(value, dict):
        return {
            _replace_in_json(name, opened): _replace_in_json(held, opened) for name, held in value.items()
        }
    if isinstance(value, list):
        return [_replace_in_json(held, opened) for held in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return opened.get(orjson.dumps(value).decode(), value)
    return value


def _replace_in_bytes(text: bytes, opened: Mapping[str, str], *, cut: bool = False) -> bytes:
    for value in sorted(opened, key=len, reverse=True):
        if len(value) >= LEAST:
            text = without_secret(text, value, cut=cut, by=opened[value].encode())
    return text
