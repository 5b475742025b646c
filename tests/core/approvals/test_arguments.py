"""Arguments are shown whole, with their origin, and never with a secret in them."""

from decimal import Decimal
from typing import Any

import pytest

from approvals.core.argument_display import (
    Argument,
    diff_shown_arguments,
    secret_pointers,
    shown_arguments,
    to_type,
)
from approvals.core.packet import ArgumentOrigin
from tests.proves import proves

KEY = "sk-" + "a1B2" * 8


def shown(value: Any, *origins: ArgumentOrigin) -> dict[str, Argument]:
    """The leaves by their pointers."""
    return {one.pointer: one for one in shown_arguments(value, origins)}


@proves("R-APPR-2", part="every argument is shown")
def test_every_leaf_is_shown_whole_and_in_order() -> None:
    value = {
        "to": "x" * 9_000,
        "n": 1,
        "f": 1.0,
        "none": None,
        "list": [True, {"a/b": ""}],
        "empty": {},
        "l": [],
    }
    found = shown(value)
    assert list(found) == ["/to", "/n", "/f", "/none", "/list/0", "/list/1/a~1b", "/empty", "/l"]
    assert [one.kind for one in found.values()] == [
        "text", "integer", "number", "null", "boolean", "text", "object", "list",
    ]  # fmt: skip
    assert (found["/to"].text, found["/f"].text, found["/none"].text) == ("x" * 9_000, "1.0", "null")


def test_where_a_value_came_from_is_said() -> None:
    found = shown(
        {"a": 1, "b": 2, "c": 3},
        ArgumentOrigin(pointer="/a", origin="trusted_fact", reference="order"),
        ArgumentOrigin(pointer="/b", origin="untrusted_observation", reference="mail"),
    )
    assert [one.source for one in found.values()] == [
        "a verified fact",
        "tool output, not verified",
        "unknown",
    ]


@proves("R-UI-4", part="secrets are masked")
@pytest.mark.parametrize(
    "value", [{"password": "hunter2-and-more"}, {"note": f"use {KEY} now"}, {"deep": [{"api_key": KEY}]}]
)
def test_a_secret_is_masked_and_has_a_fingerprint(value: Any) -> None:
    (one,) = shown_arguments(value, ())
    assert KEY not in one.text
    assert "hunter2" not in one.text
    assert len(one.fingerprint) == 8
    assert secret_pointers(value) == (one.pointer,)


def test_two_secrets_are_told_apart() -> None:
    (one,), (other,) = (shown_arguments({"password": text}, ()) for text in ("first-secret", "second-secret"))
    assert (one.text, one.fingerprint == other.fingerprint) == (other.text, False)


def test_money_asks_for_its_amount_as_it_is_written() -> None:
    typed = to_type(
        "network", has_amount=True, amount=Decimal("149.9000"), arguments={"sum": "149.90"}, tool="pay"
    )
    assert typed is not None
    assert (typed.what, typed.text) == ("amount", "149.90")
    given = {
        "149.90": True,
        " 149.9 ": True,
        "149.9000": True,
        "149.91": False,
        "": False,
        "1e3": False,
        "٣": False,
    }
    assert {text: typed.right(text) for text in given} == given


def test_what_is_destructive_asks_for_its_target() -> None:
    def asked(risk: str, arguments: Any, *, has_amount: bool = False) -> tuple[str, str] | None:
        typed = to_type(risk, has_amount=has_amount, amount=None, arguments=arguments, tool="t.t")
        return (typed.what, typed.text) if typed is not None else None

    assert asked("destructive", {"reason": "r", "service": "checkout"}) == ("target", "checkout")
    assert asked("destructive", {"reason": "r"}) == ("tool's name", "t.t")
    assert asked("network", {"to": "a@b.example"}) is None
    assert asked("network", {"order_id": "A-1"}, has_amount=True) == ("target", "A-1")


@proves("R-APPR-3", part="what was approved beside what was asked")
def test_only_the_places_that_differ_stand_side_by_side() -> None:
    asked = {"order_id": "A-1", "amount": "1", "note": "x", "password": KEY, "lines": [1, 2]}
    approved = {"order_id": "A-1", "amount": 1, "password": f"{KEY}9", "lines": [1], "to": "b"}
    found = {pair.pointer: pair for pair in diff_shown_arguments(asked, approved)}
    assert list(found) == ["/amount", "/note", "/password", "/lines/1", "/to"]
    amount = found["/amount"]
    assert amount.asked is not None
    assert amount.approved is not None
    assert (amount.asked.kind, amount.approved.kind) == ("text", "integer")
    assert (found["/note"].approved, found["/to"].asked) == (None, None)
    assert KEY not in str(found["/password"])
    assert diff_shown_arguments(asked, asked) == ()


@proves("R-APPR-2", part="an untrusted input is not called a tool's output")
def test_finding_19_an_untrusted_input_is_named_as_one() -> None:
    said = [
        Argument("/text", "x", "text", origin="untrusted_observation", reference=reference).source
        for reference in ("/complaint", "order")
    ]
    assert said == ["an untrusted input", "tool output, not verified"]
