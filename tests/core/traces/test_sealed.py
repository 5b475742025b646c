"""Sealed references: what stands in place of a sensitive value opens to exactly that value, and only where it
was meant to go."""

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proves import proves
from traces.core.redaction import redact_secrets
from traces.core.sealed_references import (
    REFERENCE,
    Place,
    extract_references,
    format_sealed_reference,
    holds_reference,
    may_open,
    read_sealed,
    with_opened,
    with_sealed,
)

NAMES = st.sampled_from(
    ["password", "api_key", "X-Api-Key", "secret", "note", "to", "access_token", "a/b", "~", "", "Passphrase"]
) | st.text(max_size=8)
KEY = "sk-abcdefghijklmnopqrstuvwxyz012345"
PARTS = st.sampled_from(
    [
        *(
            "password=hunter2",
            f"the key {KEY} is",
            "Bearer abcdefghijklmnop1234==",
            "https://a:b@c.example/x",
        ),
        *(
            '{"password": "in\\u00e9 \\"quotes\\"", "x": "\\u00e9 secret=abc"}',
            "[redacted:api_key]",
            "é\u2028\\",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
            "secret=",
            "token",
            "https://a:",
            "@",
        ),
        *('{"a": "password=x, \\"b"}', "password=$" + KEY, "bearer bearer abcdefghijklmnopqrst", '["secret='),
    ]
)
TEXTS = st.text(max_size=12) | st.lists(PARTS | st.text(max_size=4), max_size=4).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers(-(2**40), 2**40) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


class Drawer:
    """Seals for a test: each secret under a digest of what it is and where."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.members: dict[str, str] = {}

    def seal(self, kind: str, secret: str, member: str) -> str:
        """Its reference."""
        digest = sha256(json.dumps([kind, secret, member]).encode()).hexdigest()
        self.held[digest] = secret
        self.members[digest] = member
        return format_sealed_reference(kind, digest)


@proves("R-SEC-4", part="whatever is sealed opens to the same bytes")
@proves("G2", part="what is sealed is what is sent")
@given(value=st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_sealed_opens_to_exactly_what_it_was_and_nothing_is_left_to_redact(value: Any) -> None:
    drawer = Drawer()
    sealed = with_sealed(value, drawer.seal)
    assert with_opened(sealed, drawer.held.__getitem__) == value
    assert redact_secrets(json.dumps(sealed).encode())[1] == ()
    assert with_sealed(sealed, drawer.seal) == sealed
    assert with_sealed(value, drawer.seal) == sealed


@proves("R-TRACE-5", part="what a redaction takes out is sealed")
@given(value=st.dictionaries(NAMES, VALUES, max_size=4))
def test_something_is_sealed_exactly_where_a_redaction_would_take_something_out(value: Any) -> None:
    drawer = Drawer()
    with_sealed(value, drawer.seal)
    assert bool(drawer.held) == bool(redact_secrets(json.dumps(value).encode())[1])


@proves("R-SEC-4", part="a value is sealed for where it stands")
@given(value=st.dictionaries(NAMES | TEXTS, VALUES, max_size=4))
def test_each_value_is_sealed_for_the_member_at_which_its_reference_is_found(value: Any) -> None:
    drawer = Drawer()
    found = [
        one for one in extract_references(with_sealed(value, drawer.seal)) if one.digest in drawer.members
    ]
    assert [one.member for one in found] == [drawer.members[one.digest] for one in found]
    # What is kept in the clear beside a sealed value holds no secret itself.
    assert redact_secrets(json.dumps(list(drawer.members.values())).encode())[1] == ()


def test_a_member_that_holds_a_secret_is_sealed_whole_and_the_rest_in_its_place() -> None:
    drawer = Drawer()
    sealed = with_sealed(
        {"password": "hunter2", "note": f"use {KEY} now", "n": [{"secret": "x"}]}, drawer.seal
    )
    assert REFERENCE.fullmatch(sealed["password"])
    assert REFERENCE.sub("#", sealed["note"]) == "use # now"
    assert [(one.pointer, one.member) for one in extract_references(sealed)] == [
        ("/password", "password"),
        ("/note", "note"),
        ("/n/0/secret", "secret"),
    ]
    assert holds_reference(sealed["note"])
    assert not holds_reference("[sealed:api_key:abc]")


@proves("M16", part="where a sealed value may go")
@pytest.mark.parametrize(
    ("place", "tool", "member", "allowed"),
    [
        (Place(source="call", tool="crm.change", member="password"), "crm.change", "password", True),
        (Place(source="call", tool="crm.change", member="password"), "crm.change", "note", False),
        (Place(source="call", tool="crm.change", member="password"), "mail.send", "password", False),
        (Place(source="goal", member="password"), "crm.change", "password", True),
        (Place(source="goal", member="pin"), "crm.change", "pin", True),
        (Place(source="goal", member="pin"), "crm.change", "password", True),
        (Place(source="goal", member="password"), "mail.send", "text", False),
        (Place(source="goal"), "mail.send", "", False),
    ],
)
def test_a_model_puts_a_value_only_where_it_was_meant_to_go(
    place: Place, tool: str, member: str, allowed: bool
) -> None:
    assert may_open(place, tool=tool, member=member, by_model=True) is allowed
    assert may_open(place, tool=tool, member=member, by_model=False)


def test_other_content_is_no_sealed_value() -> None:
    for body in (
        b"",
        b"{}",
        b"[1]",
        b'{"v":1,"kind":"x"}',
        b"\xff",
        b'{"v":2,"kind":"x","box":""}',
    ):
        assert read_sealed(body) is None
