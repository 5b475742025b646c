"""A call's arguments for a reviewer: leaf by leaf, complete, each with its origin (R-APPR-2)."""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from approvals.core.packet import ArgumentOrigin, Origin
from traces.core.redaction import redact_secrets
from traces.core.sealed_references import REFERENCE, holds_reference

TARGETS = ("to", "recipient", "target", "service", "account", "order_id", "path", "name", "id")
ORIGINS: Mapping[Origin, str] = {
    "goal": "the goal",
    "plan": "the workflow",
    "trusted_fact": "a verified fact",
    "untrusted_observation": "tool output, not verified",
    "person": "a person",
    "model": "written by the model",
}


class Argument(NamedTuple):
    """One leaf of the arguments.

    `text` is its value, with secrets removed; `fingerprint` distinguishes secrets; `alarming`: the packet
    states its origin first; `sealed`: the value can be revealed.
    """

    pointer: str
    text: str
    kind: str
    origin: Origin | None = None
    reference: str = ""
    fingerprint: str = ""
    sensitive: bool = False
    alarming: bool = False
    sealed: bool = False

    @property
    def source(self) -> str:
        """The origin as text for the reviewer."""
        if self.origin == "untrusted_observation" and self.reference.startswith("/"):
            return "an untrusted input"
        return ORIGINS[self.origin] if self.origin is not None else "unknown"


class TypedConfirmation(NamedTuple):
    """The confirmation that a reviewer types before approving.

    `what` is its name; `amount` is set if the text is an amount.
    """

    what: str
    text: str
    amount: Decimal | None = None

    def right(self, given: str) -> bool:
        """Return whether the input matches; amounts are compared by value."""
        plain = given.strip()
        if self.amount is None:
            return plain == self.text.strip()
        return plain.isascii() and plain.replace(".", "", 1).isdigit() and Decimal(plain) == self.amount


def shown_arguments(
    value: Any,
    origins: Iterable[ArgumentOrigin],
    sensitive: Iterable[str] = (),
    alarming: Collection[str] = (),
) -> tuple[Argument, ...]:
    """List every leaf of the arguments in order; an empty object or list is a leaf too."""
    known = {part.pointer: part for part in origins}
    marked = tuple(sensitive)
    return tuple(
        _build_argument(pointer, key, leaf, known, marked)._replace(alarming=pointer in alarming)
        for pointer, key, leaf in _collect_leaves(value, "", "")
    )


class ArgumentDifference(NamedTuple):
    """One place with different values in the request and in the approval; None: no value there."""

    asked: Argument | None
    approved: Argument | None

    @property
    def pointer(self) -> str:
        """The pointer of the place."""
        return next(one.pointer for one in self if one is not None)


def diff_shown_arguments(asked: Any, approved: Any) -> tuple[ArgumentDifference, ...]:
    """List the places where approved and requested arguments differ, in order. Secrets show as marks."""
    before, after = ({one.pointer: one for one in shown_arguments(each, ())} for each in (asked, approved))
    pairs = (
        ArgumentDifference(before.get(place), after.get(place)) for place in dict.fromkeys((*before, *after))
    )
    return tuple(pair for pair in pairs if pair.asked != pair.approved)


def secret_pointers(value: Any) -> tuple[str, ...]:
    """List the places whose values must not be shown."""
    return tuple(argument.pointer for argument in shown_arguments(value, ()) if argument.fingerprint)


def without_secrets(value: Any) -> Any:
    """Return the value with a mark in place of anything that looks like a secret."""
    return orjson.loads(redact_secrets(orjson.dumps(value))[0])


def to_type(
    risk: str, *, has_amount: bool, amount: Decimal | None, arguments: Any, tool: str
) -> TypedConfirmation | None:
    """Return the confirmation to type before an approval; None if a click is enough.

    The confirmation is the amount, or the target of a destructive call.
    """
    if has_amount and amount is not None:
        return TypedConfirmation("amount", _format_written_amount(arguments, amount), amount)
    if risk != "destructive" and not has_amount:
        return None
    held = arguments if isinstance(arguments, dict) else {}
    found = [held[name] for name in TARGETS if isinstance(held.get(name), str) and held[name].strip()]
    return TypedConfirmation("target", found[0]) if found else TypedConfirmation("tool's name", tool)


def _format_written_amount(arguments: Any, amount: Decimal) -> str:
    """Return the amount as written in the arguments, else in plain notation."""
    for _, _, leaf in _collect_leaves(arguments, "", ""):
        if isinstance(leaf, str) and TypedConfirmation("", "", amount).right(leaf):
            return leaf
    return f"{amount.normalize():f}"


def _build_argument(
    pointer: str, key: str, leaf: Any, known: Mapping[str, ArgumentOrigin], sensitive: tuple[str, ...]
) -> Argument:
    part = known.get(pointer)
    text, fingerprint = _redact_leaf(key, leaf)
    return Argument(
        pointer, text, _name_json_type(leaf), part.origin if part is not None else None,
        part.reference if part is not None else "", fingerprint, pointer in sensitive,
        sealed=isinstance(leaf, str) and holds_reference(leaf),
    )  # fmt: skip


def _redact_leaf(key: str, leaf: Any) -> tuple[str, str]:
    """Return the text with anything that looks like a secret removed, and that secret's fingerprint."""
    text = leaf if isinstance(leaf, str) else orjson.dumps(leaf).decode()
    if (sealed := REFERENCE.search(text)) is not None:
        return REFERENCE.sub(r"[sealed:\1]", text), sealed[2][:8]
    clean, found = redact_secrets(orjson.dumps({key: leaf}))
    if not found:
        return text, ""
    kept = orjson.loads(clean)[key]
    return kept if isinstance(kept, str) else orjson.dumps(kept).decode(), sha256(text.encode()).hexdigest()[
        :8
    ]


def _collect_leaves(value: Any, pointer: str, key: str) -> list[tuple[str, str, Any]]:
    if isinstance(value, dict) and value:
        return [
            found
            for name in value
            for found in _collect_leaves(value[name], f"{pointer}/{_escape_pointer_token(name)}", name)
        ]
    if isinstance(value, list) and value:
        return [
            found for n, item in enumerate(value) for found in _collect_leaves(item, f"{pointer}/{n}", key)
        ]
    return [(pointer, key, value)]


def _name_json_type(leaf: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "text", dict: "object", list: "list"}
    return names.get(type(leaf), "null")


def _escape_pointer_token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
