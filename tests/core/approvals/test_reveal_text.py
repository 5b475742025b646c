"""The text that a reveal opens: a value, or a member's name with what stands under it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from approvals.actions.reveal import _text_at
from approvals.core.errors import DecisionInvalid
from tests.proves import proves
from traces.core.sealed_references import REFERENCE

MARK = "[sealed:secret_field:" + "a" * 64 + "]"


def pointer_of(name: str) -> str:
    """Return the pointer to a member at the root."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


@proves("R-SEC-4", part="a sealed member's name is revealed with its value")
@pytest.mark.parametrize(
    ("value", "text"),
    [("x", f"{MARK}: x"), (5, f"{MARK}: 5"), (None, f"{MARK}: null"), ({"a": MARK}, MARK), ([1], MARK)],
)
def test_a_sealed_name_is_given_with_a_plain_value_and_alone_before_a_nested_one(
    value: Any, text: str
) -> None:
    assert REFERENCE.fullmatch(MARK)
    assert _text_at(orjson.dumps({MARK: value}).decode(), pointer_of(MARK)) == text


def test_a_sealed_value_is_given_without_the_name_of_its_member() -> None:
    assert _text_at(orjson.dumps({"password": MARK}).decode(), "/password") == MARK
    assert _text_at(orjson.dumps({"a": ["x", f"is {MARK}"]}).decode(), "/a/1") == f"is {MARK}"


@pytest.mark.parametrize("pointer", ["/b", "", "/a/0"])
def test_a_place_where_nothing_is_sealed_is_refused(pointer: str) -> None:
    with pytest.raises(DecisionInvalid):
        _text_at(orjson.dumps({"a": ["x", MARK], "b": 1}).decode(), pointer)
