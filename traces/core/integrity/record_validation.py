"""Checks that a record's body or patch has the structure that the verification relies on."""

from collections.abc import Mapping
from typing import Any

from traces.core.payload_fields import is_digest


def is_record(content: Mapping[str, Any]) -> bool:
    """Return whether a record's references to events, patches and snapshots are well-formed."""
    said, patch, binds = content.get("said", []), content.get("patch") or {}, content.get("binds") or {}
    if not (isinstance(said, list) and isinstance(patch, dict) and isinstance(binds, dict)):
        return False
    return (
        all(isinstance(one, str) and is_digest(one) for one in said)
        and all(map(_is_change, patch.values()))
        and all(isinstance(one, str) and _is_name(name) for name, one in binds.items())
    )


def is_applicable_patch(state: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Return whether a patch changes entries only in objects, or in fields that do not exist yet."""
    return all("set" in change or isinstance(state.get(name, {}), dict) for name, change in patch.items())


def _is_change(change: Any) -> bool:
    if not isinstance(change, dict):
        return False
    return "set" in change or (
        isinstance(change.get("put", {}), dict) and isinstance(change.get("drop", []), list)
    )


def _is_name(name: str) -> bool:
    kind, _, key = name.partition(":")
    return kind != "snapshot" or (key.isascii() and key.isdecimal() and len(key) < 19)
