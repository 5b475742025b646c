"""Where the packet says that an argument comes from."""

from typing import Any

import orjson
import pytest

from orchestrator.core.common.goal import Goal
from orchestrator.core.domain.effects import AskApproval, Effect
from tests.core.orchestrator.loops import loop
from tests.core.orchestrator.simulation import Simulation
from tests.core.orchestrator.test_refund_walk import Walking
from tests.proves import proves


def shown(contents: dict[str, bytes], asked: Effect) -> dict[str, tuple[str, str]]:
    """The origins in the packet that was put before people, by pointer."""
    assert isinstance(asked, AskApproval)
    packet = orjson.loads(contents[asked.packet])
    return {part["pointer"]: (part["origin"], part["reference"]) for part in packet["provenance"]}


def refund(inputs: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The origins of the shipped refund's arguments."""
    walking = Walking({"order_id": "A-1001", **inputs})
    (asked,) = [effect for effect in walking.waiting if isinstance(effect, AskApproval)]
    return shown(walking.content, asked)


@proves("R-APPR-2", part="the sources of a fixed call")
def test_a_fixed_call_shows_the_sources_that_its_node_declares() -> None:
    assert refund({}) == {
        "/order_id": ("untrusted_observation", "order"),
        "/amount": ("untrusted_observation", "policy"),
        "/currency": ("untrusted_observation", "order"),
        "/reason": ("plan", "refund"),
    }


def test_what_the_client_gave_is_shown_as_given() -> None:
    found = refund({"amount": "10.00", "reason": "refund"})
    assert (found["/amount"], found["/reason"]) == (("goal", "/amount"), ("goal", "/reason"))


def asked_for(objective: str, arguments: dict[str, Any], observed: dict[str, Any]) -> Simulation:
    """A loop that looked something up and then asks for a refund."""
    run = loop(goal=Goal(objective=objective))
    run.reply(("orders.lookup", {"id": "A-1"}))
    run.answer(observed)
    run.reply(("payments.refund", arguments))
    return run


def origin(objective: str, value: Any, observed: dict[str, Any]) -> str:
    """Where a model's value is said to come from."""
    run = asked_for(objective, {"amount": "1.00", "id": value}, observed)
    return shown(run.contents, run.requests[0])["/id"][0]


@proves("R-APPR-2", part="the sources of a model's call")
@pytest.mark.parametrize(
    ("objective", "value", "observed", "wanted"),
    [
        ("Refund order A-1001.", "A-1001", {}, "goal"),
        ("Refund order A-1001.", "a-1001", {}, "goal"),
        ("Refund order A-1001.", "1001", {}, "model"),
        ("Refund order A-1001.", "100", {}, "model"),
        ("Refund order A-1001.", "A", {}, "model"),
        ("Refund 10.00 of it.", "10", {}, "goal"),
        ("Refund 110.00 of it.", "10.00", {}, "model"),
        ("Refund it to \uff21nna.", "anna", {}, "goal"),
        ("Refund the order", "100", {"order": "A-1001"}, "model"),
        ("Refund the order", "100", {"total": 100}, "untrusted_observation"),
        ("Refund 100 of it.", "100.00", {"total": "100"}, "untrusted_observation"),
        ("Refund the order", "it's \"so\"", {"note": "well, it's \"so\"."}, "untrusted_observation"),
        ("Refund the order", "late", {"padding": "x " * 30_000, "note": "late"}, "untrusted_observation"),
        ("Refund the order, true.", True, {"paid": True}, "model"),
        ("Refund the order", "", {"note": ""}, "model"),
    ],
)  # fmt: skip
def test_a_models_value_has_the_worst_source_it_stands_in(
    objective: str, value: Any, observed: dict[str, Any], wanted: str
) -> None:
    assert origin(objective, value, observed) == wanted
