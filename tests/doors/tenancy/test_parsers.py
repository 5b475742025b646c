"""Hostile JSON gets a typed refusal, never a crash (W2)."""

import time
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import APIException

from tenancy.rest.parsers import DEPTH, StrictJSONParser, TooLarge
from tests.proves import proves


def parsed(body: bytes) -> Any:
    """The value of a body."""
    return StrictJSONParser().parse(BytesIO(body))


def refused(body: bytes) -> tuple[int, str]:
    """Status and code of the refusal."""
    with pytest.raises(APIException) as refusal:
        parsed(body)
    return refusal.value.status_code, str(refusal.value.get_codes())


def nested(depth: int) -> bytes:
    """Lists in lists."""
    return b"[" * depth + b"]" * depth


def test_what_is_well_formed_is_taken() -> None:
    assert parsed(b'{"a": [1, -2, 3.5, "\xc3\xa9", null, true]}') == {"a": [1, -2, 3.5, "é", None, True]}


@proves("W2", part="not JSON")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b"[1,]",
        b"NaN",
        b"[Infinity]",
        b"\xff\xfe",
        b'"\xc3\x28"',
        b'"\x00"',
        b"1e999",
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'{"a": "\\udc00x"}',
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert refused(body) == (400, "not-json")


@proves("W2", part="characters and numbers")
@pytest.mark.parametrize(
    "body",
    [
        b'"a\\u0000b"',
        b'{"a\\u0000": 1}',
        b'[{"a": ["\\u0000"]}]',
        b"9007199254740993",
        b"-9007199254740993",
        b"[18446744073709551616]",
        b"1" * 5_000,
        b"1e300",
    ],
)
def test_what_cannot_be_kept_exactly_is_refused(body: bytes) -> None:
    assert refused(body)[0] == 400


@proves("W2", part="depth")
@pytest.mark.parametrize("depth", [DEPTH + 1, 1_000, 100_000])
def test_what_is_too_deep_is_refused(depth: int) -> None:
    assert refused(nested(depth))[0] == 400


def test_what_is_just_deep_enough_is_taken() -> None:
    assert parsed(nested(DEPTH))


@proves("W2", part="ten megabytes")
def test_what_is_too_large_is_refused_without_being_read_whole() -> None:
    stream = BytesIO(b'"' + b"a" * 10_000_000 + b'"')
    with pytest.raises(TooLarge):
        StrictJSONParser().parse(stream)
    assert stream.tell() < 2_000_000


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(body: bytes) -> None:
    try:
        parsed(body)
    except APIException as refusal:
        assert refusal.status_code == 400  # noqa: PT017 - most bytes are refused, some are JSON


@proves("R-SEC-11", part="duplicate member names")
@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"amount": 1, "amount": 1000}', "amount"),
        (b'{"a": 1, "a": 1}', "a"),
        (b'{"a": 1, "\\u0061": 2}', "a"),
        (b'[{"goal": {"inputs": {"to": "me", "x": 1, "to": "you"}}}]', "to"),
        (b'{"": 1, "": 2}', ""),
    ],
)
def test_member_given_twice_is_refused_by_name(body: bytes, name: str) -> None:
    with pytest.raises(APIException) as refusal:
        parsed(body)
    assert (refusal.value.status_code, refusal.value.get_codes()) == (400, "member-repeated")
    assert f'"{name}"' in str(refusal.value.detail)


def test_member_of_the_same_name_in_another_object_is_taken() -> None:
    body = b'{"a": {"a": [{"a": 1}, {"a": 2}]}, "A": 1, "n": 1e-5000, "f": 0.1}'
    assert parsed(body)["a"] == {"a": [{"a": 1}, {"a": 2}]}


def test_large_body_of_many_members_is_looked_through_quickly() -> None:
    members = b",".join(b'"m%d": %d' % (n, n) for n in range(60_000))
    began = time.perf_counter()
    assert len(parsed(b"{%s}" % members)) == 60_000
    assert refused(b'{%s, "m59999": 0}' % members) == (400, "member-repeated")
    assert time.perf_counter() - began < 3
