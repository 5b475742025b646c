"""Categories of tools with their defaults: the reference's eligibility matrix (R-TOOL-2)."""

from typing import Any

import pytest

from orchestrator.core.domain.memory_gate import CATEGORY as MEMORY
from orchestrator.core.domain.tool_category import CATEGORIES, default_queue, default_risk
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec
from orchestrator.core.tools.guard_relaxation import describe_weaker_registration
from orchestrator.core.tools.registration import asked_admission, build_remote_tool_spec
from orchestrator.core.tools.remote_definition import Definition
from orchestrator.tools.gateways.registry import shipped_tools
from tenancy.core.errors import InvalidInput
from tests.proves import proves

R, L, N, G, D = Risk
# Category: the class of what only reads, of a change that can be taken back, and of one that cannot.
MATRIX: dict[str, tuple[Risk, Risk | None, Risk | None]] = {
    "lookup": (R, None, None), "retrieval": (R, None, None), "live_api": (R, N, N),
    "calculator": (R, None, None), "sandbox": (R, L, L), "files": (R, L, D), "database": (R, D, D),
    "email": (R, L, N), "procurement": (R, G, G), "payment": (R, G, D), "infrastructure": (R, G, D),
    "review_queue": (R, L, L),
}  # fmt: skip
OFFERED = Definition(name="thing", input_schema={"type": "object", "properties": {}}, annotations={})


def made(**given: Any) -> ToolSpec:
    """The tool that an admission makes of what a server offers."""
    admission = asked_admission({"reversibility": "irreversible", **given})
    return build_remote_tool_spec("crm.thing", "crm", "https://crm.example", OFFERED, admission)


def refused(**given: Any) -> list[str]:
    """Where an admission is wrong."""
    with pytest.raises(InvalidInput) as error:
        made(**given)
    return [one["pointer"] for one in error.value.data["errors"]]


@proves("R-TOOL-2", part="categories with the reference's defaults")
@pytest.mark.parametrize("category", MATRIX)
def test_each_category_has_the_classes_of_the_matrix(category: str) -> None:
    reading, undoable, final = MATRIX[category]
    found = [default_risk(category, one) for one in Reversibility]
    assert found == [reading, undoable, undoable, final]
    assert set(MATRIX) == set(CATEGORIES)
    # What the matrix asks approval for is put before a person by its class alone.
    asks = {"live_api", "database", "email", "procurement", "payment", "infrastructure", "files"}
    assert (final is not None and final.is_gated) == (category in asks)


@proves("R-TOOL-2", part="a tool that nobody classed has its category's class")
def test_an_admission_that_says_no_class_has_the_one_of_its_category() -> None:
    paid = made(category="payment")
    assert (paid.risk, paid.queue, paid.needs_gate) == (D, "finance", True)
    # What a tool that is no code of ours changes, it changes outside.
    back = {"tool": "crm.undo", "wanted": "It is undone."}
    assert made(category="email", reversibility="reversible", compensation=back).risk is N
    assert made(category="sandbox").risk is N
    assert made(category="live_api", reversibility="pure").risk is R
    assert made(category="payment", queue="treasury").queue == "treasury"
    assert made(risk="network").queue == default_queue("remote") == "operations"
    assert refused() == ["/risk"]
    assert refused(category="money") == ["/category"]


@proves("R-TOOL-3", part="a change outside that can be taken back names what takes it back")
@pytest.mark.parametrize("reversibility", ["reversible", "compensable"])
def test_what_can_be_taken_back_names_the_tool_that_does_it(reversibility: str) -> None:
    assert refused(risk="network", reversibility=reversibility) == ["/compensation"]
    back = {"tool": "crm.undo", "wanted": "It is undone."}
    assert made(risk="network", reversibility=reversibility, compensation=back).compensation is not None
    assert made(risk="network").compensation is None
    # What is undone here needs no tool, unless it is said that one does it.
    found = made(risk="local_write", reversibility="reversible").compensation
    assert found is None
    assert refused(risk="local_write", reversibility="compensable") == ["/compensation"]


@proves("R-TOOL-3", part="what cannot be taken back is always gated")
def test_what_cannot_be_taken_back_asks_a_person_whatever_its_class() -> None:
    assert made(risk="local_write").needs_gate
    assert not made(risk="local_write", reversibility="reversible").needs_gate
    assert refused(risk="local_write", approval="never") == ["/approval"]


@proves("R-TOOL-2", part="what a category rules out")
@pytest.mark.parametrize("category", ["lookup", "retrieval", "calculator"])
def test_what_only_reads_by_its_category_changes_nothing(category: str) -> None:
    assert refused(category=category) == ["/category"]
    assert refused(category=category, risk="network") == ["/category"]
    assert made(category=category, reversibility="pure").risk is R


@proves("R-TOOL-4", part="a class below the category's")
def test_a_class_below_the_categorys_is_a_weaker_guard() -> None:
    usual, less = made(category="database"), made(category="database", risk="network")
    assert (
        "Its category (database) makes it destructive; it would be network."
        in describe_weaker_registration(OFFERED, less)
    )
    assert not any("category" in line for line in describe_weaker_registration(OFFERED, usual))
    assert not any(
        "category" in line for line in describe_weaker_registration(OFFERED, made(risk="local_write"))
    )


@proves("R-TOOL-2", part="shipped tools have a category and no lesser class")
@pytest.mark.parametrize("name", sorted(shipped_tools()))
def test_a_shipped_tool_is_classed_as_its_category_or_higher(name: str) -> None:
    spec = shipped_tools()[name].spec
    if spec.category == MEMORY:
        assert not spec.risk.is_gated
        return
    usual = default_risk(spec.category, spec.reversibility)
    assert usual is not None
    assert spec.risk.rank >= usual.rank
    if spec.risk.is_gated and spec.category in ("payment", "email"):
        assert spec.queue == default_queue(spec.category)
