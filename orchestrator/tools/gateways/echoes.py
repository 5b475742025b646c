"""Replaces values that were unsealed for a call by their references in the service's answer (M16, W8)."""

from collections.abc import Mapping
from typing import Any

import orjson

from orchestrator.tools.gateways.secret_redaction import without_secret

# A shorter value occurs in too many texts by chance; it is only replaced where it is a whole text or
# number.
LEAST = 6


def replace_opened_values(body: bytes, opened: Mapping[str, str]) -> bytes:
    """Replace the values of `opened` (value to reference) in all the spellings of an echo.

    JSON stays JSON: numbers that equal such a value are replaced, too.
    """
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
