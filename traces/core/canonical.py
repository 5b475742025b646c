"""The canonical form: what is hashed is what is stored (docs/trace-format.md).

UTF-8 JSON, keys by code point, no white space, decimals as plain strings, times as RFC 3339 in UTC with
microseconds. Our own values have no floats; values from outside may (finite, in their shortest form).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel

from traces.core.errors import NotCanonical

_FORM = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
LARGEST = 2**63
_TEXT = frozenset({str})
# A fragment is JSON that was written, and thereby checked, before.
_PLAIN = frozenset({str, bool, type(None), Decimal, UUID, datetime, orjson.Fragment})


def encode_canonical(value: Any) -> bytes:
    """The canonical bytes of a value of ours. Raises NotCanonical: floats, sets, naive times, odd keys."""
    _check_encodable(value, floats=False)
    return canonical_typed(value)


def canonical_model(model: BaseModel) -> bytes:
    """The canonical bytes of a frozen model, whose types were checked when it was made and know no floats."""
    return canonical_typed(model.__dict__)


def canonical_typed(value: Any) -> bytes:
    """The canonical bytes of a value made of such models: `encode_canonical` without its walk.

    Raises NotCanonical.
    """
    try:
        return orjson.dumps(value, default=_encode_own_type, option=_FORM)
    except (orjson.JSONEncodeError, UnicodeEncodeError) as error:
        raise NotCanonical(detail=str(error)[:200]) from None


def canonical_outside(value: Any) -> bytes:
    """The canonical bytes of JSON from outside: finite floats stay numbers, in their shortest form.

    Raises NotCanonical for numbers that are not finite and for whole numbers beyond 64 bits.
    """
    _check_encodable(value, floats=True)
    return canonical_typed(value)


def compute_digest(domain: str, data: bytes) -> str:
    """SHA-256 (hex) of the domain's one word, a zero byte and the data: no digest can pass for another's."""
    return sha256(domain.encode() + b"\0" + data).hexdigest()


def payload_digest(salt: bytes, data: bytes) -> str:
    """The digest (hex) of content under its run's salt: nobody can guess a short value from it, or link
    tenants.
    """
    return sha256(salt + data).hexdigest()


def format_decimal(amount: Decimal) -> str:
    """A decimal without exponent and without trailing zeros."""
    text = str(amount)
    if text.isdecimal():
        return text  # most are small whole numbers, and a commit writes thirty
    if not amount.is_finite():
        raise NotCanonical(detail="a decimal that is not finite")
    text = f"{amount:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def format_canonical_time(at: datetime) -> str:
    """A time as it is written: 2026-01-31T09:00:00.000000Z."""
    if at.tzinfo is None:
        raise NotCanonical(detail="a time without its zone")
    # What is kept is found by equality, and of one zone both hours of an autumn night are equal.
    return _format_utc_time(at if at.tzinfo is UTC else at.astimezone(UTC))


@lru_cache(64)
def _format_utc_time(at: datetime) -> str:
    """A time in UTC as it is written. A commit has one, and writes it a dozen times."""
    return at.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@lru_cache(256)
def text_of(identity: UUID) -> str:
    """A UUID as it is written. A commit writes some fifteen, most of them its run's and its tenant's."""
    return str(identity)


_WRITTEN: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (BaseModel, lambda value: value.__dict__),
    (Decimal, format_decimal),
    (datetime, format_canonical_time),
    (Enum, lambda value: value.value),
    (UUID, text_of),
    (str, str.__str__),
    (int, int.__int__),
    (dict, dict),
    ((tuple, list), list),
)


class _Writers(dict[type, Callable[[Any], Any]]):
    """How values of a class are written. Raises TypeError for a class that is none of ours."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        if hasattr(kind, "_fields"):
            # A named tuple would be written without its names.
            raise TypeError(kind.__name__)
        for known, written in _WRITTEN:
            if issubclass(kind, known):
                self[kind] = written
                return written
        raise TypeError(kind.__name__)


_WRITERS = _Writers()


def _encode_own_type(value: Any) -> Any:
    return _WRITERS[type(value)](value)


def _check_encodable(value: Any, *, floats: bool) -> None:
    """Walk a value without recursion: orjson itself would write a float, and NaN as null."""
    level = [value]
    while level:
        below: list[Any] = []
        for item in level:
            if type(item) in _PLAIN:
                continue
            if isinstance(item, dict):
                if not _TEXT.issuperset(map(type, item)) and any(not isinstance(key, str) for key in item):
                    raise NotCanonical(detail="a key that is no text")
                below.extend(item.values())
            elif isinstance(item, list | tuple):
                below.extend(item)
            elif isinstance(item, BaseModel):
                below.extend(item.__dict__.values())
            elif isinstance(item, float | int):
                _check_number(item, floats=floats)
        level = below


def _check_number(number: Any, *, floats: bool) -> None:
    if isinstance(number, float):
        if not isfinite(number):
            raise NotCanonical(detail="a number that is not finite")
        if not floats:
            raise NotCanonical(detail="a float")
    elif not -LARGEST <= number < LARGEST:
        raise NotCanonical(detail="a whole number beyond 64 bits")
