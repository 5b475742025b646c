"""The canonical form: one value, one text, in every process."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from tests.proves import proves
from traces.core.canonical import (
    canonical_model,
    canonical_outside,
    compute_digest,
    encode_canonical,
    format_canonical_time,
    format_decimal,
    payload_digest,
)
from traces.core.errors import NotCanonical

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
INTS = st.integers(-(2**63), 2**63 - 1)
LEAF = st.none() | st.booleans() | INTS | TEXT
OURS = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
OUTSIDE = st.recursive(
    LEAF | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)


class Colour(Enum):
    """A closed word."""

    RED = "red"


class Word(StrEnum):
    """A word that is a text too."""

    YES = "yes"


class Thing(BaseModel):
    """A frozen model with one of each."""

    model_config = ConfigDict(frozen=True)
    amount: Decimal = Decimal("1.50")
    at: datetime = datetime(2026, 1, 31, 9, tzinfo=UTC)
    id: UUID = UUID(int=7)
    colour: Colour = Colour.RED
    word: Word = Word.YES
    more: tuple[str, ...] = ("b", "a")
    inner: dict[str, Decimal] = {"b": Decimal(2), "a": Decimal("0.0")}


@given(OURS)
def test_what_was_written_is_read_as_it_was_and_written_the_same_again(value: Any) -> None:
    data = encode_canonical(value)
    assert orjson.loads(data) == value
    assert encode_canonical(orjson.loads(data)) == data


@given(OUTSIDE)
def test_json_from_outside_comes_back_as_it_was(value: Any) -> None:
    assert canonical_outside(orjson.loads(canonical_outside(value))) == canonical_outside(value)


@given(st.dictionaries(TEXT, INTS, max_size=8))
def test_keys_stand_by_code_point_whatever_order_they_came_in(value: dict[str, int]) -> None:
    turned = dict(reversed(list(value.items())))
    data = encode_canonical(value)
    assert data == encode_canonical(turned)
    assert list(orjson.loads(data)) == sorted(value)


def test_every_kind_of_ours_has_one_form() -> None:
    assert (
        canonical_model(Thing())
        == encode_canonical(Thing())
        == (
            b'{"amount":"1.5","at":"2026-01-31T09:00:00.000000Z","colour":"red",'
            b'"id":"00000000-0000-0000-0000-000000000007","inner":{"a":"0","b":"2"},"more":["b","a"],"word":"yes"}'
        )
    )


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("1.50", "1.5"), ("100", "100"), ("1E+3", "1000"), ("0E-7", "0"), ("-0", "0"), ("-0.00", "0"),
        ("1E-7", "0.0000001"), ("-12.3400", "-12.34"),
    ],
)  # fmt: skip
def test_a_decimal_has_no_exponent_and_no_trailing_zeros(amount: str, text: str) -> None:
    assert format_decimal(Decimal(amount)) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_a_decimal_keeps_its_value(amount: Decimal) -> None:
    assert Decimal(format_decimal(amount)) == amount


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=5, minutes=30)))))
def test_a_time_is_written_in_utc_with_microseconds(at: datetime) -> None:
    if at.year > 1:
        assert datetime.fromisoformat(format_canonical_time(at)) == at
        assert len(format_canonical_time(at)) == 27


@pytest.mark.parametrize(
    "value",
    [
        1.5, float("nan"), {"a": [{"b": 0.1}]}, {1: "a"}, {"a": {"b"}}, frozenset("a"), b"bytes", 2**63,
        -(2**63) - 1,
        datetime(2026, 1, 1),  # noqa: DTZ001 - the zone is what is missing
        Decimal("NaN"), Decimal("Infinity"), "\ud800", object(), timedelta(1),
    ],
)  # fmt: skip
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        encode_canonical(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")], {"a": 2**64}, {1: 2}])
def test_json_from_outside_must_be_finite_and_within_64_bits(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_outside(value)


def test_a_float_from_outside_stands_in_its_shortest_form() -> None:
    assert canonical_outside([0.1, 1.0, 12.5, 0.30000000000000004]) == b"[0.1,1.0,12.5,0.30000000000000004]"


def test_no_digest_can_pass_for_anothers() -> None:
    assert compute_digest("record", b"x") != compute_digest("event", b"x")
    assert payload_digest(b"1" * 32, b"x") != payload_digest(b"2" * 32, b"x")


def test_two_moments_that_a_clock_shows_alike_have_two_stamps() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    second = first.replace(fold=1)
    assert (format_canonical_time(first), format_canonical_time(second)) == (
        "2026-10-25T00:30:00.000000Z",
        "2026-10-25T01:30:00.000000Z",
    )


@proves("R-TRACE-3", part="two processes")
def test_two_processes_with_two_hash_seeds_write_the_same(scratch: Path) -> None:
    code = (
        "from decimal import Decimal\n"
        "from traces.core.canonical import compute_digest, encode_canonical\n"
        "words = ['b', 'a', 'é', 'z', 'aa', '€']\n"
        "value = {w: {v: Decimal(len(v)) for v in words} for w in dict.fromkeys(words)}\n"
        "print(compute_digest('state', encode_canonical(value)))\n"
    )
    root = Path(__file__).resolve().parents[3]
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(answers) == 1
