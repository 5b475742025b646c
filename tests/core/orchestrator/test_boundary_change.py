"""Reading a boundary's document, and where it lets a run do more than the version before (R-GRAPH-11)."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import bundled_content
from orchestrator.core.compiler.boundary_change import list_widenings, read_boundary
from orchestrator.core.domain.boundary import Boundary, ToolGrant
from orchestrator.core.domain.tool_spec import Risk
from tenancy.core.errors import InvalidInput
from tests.proves import proves

BEFORE = bundled_content.get_bundled_boundary("tool-loop-default")
RISKS = [Risk.READ_ONLY, Risk.NETWORK, Risk.DESTRUCTIVE]
NAMES = ["crm.*", "crm.find", "crm.send", "crm.old.*", "crm.old.find", "mail.*"]
CALLED = ["crm.find", "crm.send", "crm.other", "crm.old.find", "crm.old.other", "mail.send", "web.fetch"]


def refused(document: dict[str, Any]) -> list[str]:
    """The places of the faults of a document."""
    with pytest.raises(InvalidInput) as caught:
        read_boundary(document)
    return [one["pointer"] for one in caught.value.data["errors"]]


@proves("R-GRAPH-11", part="limits of a boundary come from a profile or are all stated")
def test_boundary_document_takes_the_limits_of_its_profile_and_amends_them() -> None:
    found = read_boundary({"slug": "mine", "profile": "support", "budget": {"tool_calls": 3}})
    assert (found.budget["tool_calls"], found.budget["model_turns"]) == (Decimal(3), Decimal(20))
    assert refused({"slug": "mine", "budget": {"tool_calls": 3}}) == ["/budget"]


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"slug": "Not a slug"}, "/slug"),
        ({"slug": "a" * 51}, "/slug"),
        ({"profile": "generous"}, "/profile"),
        ({"budget": {"tool_calls": "many"}}, "/budget/tool_calls"),
        ({"budget": {"tool_calls": -1}}, "/budget/tool_calls"),
        ({"budget": {"luck": 1}}, "/budget/luck"),
        ({"budget": [1]}, "/budget"),
        ({"tools": [{"name": "*"}]}, "/tools/0/name"),
        ({"tools": [{"name": "crm find"}]}, "/tools/0/name"),
        ({"tools": [{"name": "crm.find", "risk_ceiling": "mild"}]}, "/tools/0/risk_ceiling"),
        ({"tool": []}, "/tool"),
    ],
)
def test_boundary_document_with_a_fault_names_its_place(changed: dict[str, Any], pointer: str) -> None:
    assert refused({"slug": "mine", "profile": "support", **changed}) == [pointer]


def with_limits(**changed: Decimal | None) -> Boundary:
    """The boundary with other limits."""
    return BEFORE.evolve(budget={**BEFORE.budget, **changed})


WIDER = {
    "a new tool": BEFORE.evolve(tools=(*BEFORE.tools, ToolGrant(name="crm.find"))),
    "a higher ceiling": BEFORE.evolve(tools=(ToolGrant(name="orders.*"), *BEFORE.tools)),
    "more turns": with_limits(model_turns=Decimal(21)),
    "no limit": with_limits(cost_usd=None),
    "more sources": BEFORE.evolve(observations=(*BEFORE.observations, "crm")),
    "a right": BEFORE.evolve(decision_rights=(*BEFORE.decision_rights, "plan_change")),
    "memory": BEFORE.evolve(memory="read"),
    "a count": BEFORE.evolve(refusal_limit=9),
    "longer yes": BEFORE.evolve(grant_ttl_seconds=7_200),
    "a queue less": BEFORE.evolve(escalation_routes={"default": "operations"}),
    "undone at once": BEFORE.evolve(compensation="automatic"),
    "asks for more": BEFORE.evolve(on_exhaustion="request"),
    "a place": BEFORE.evolve(scope=BEFORE.scope.evolve(domains=("*.example.org",))),
    "a warning": BEFORE.evolve(with_approval=()),
}


@proves("R-GRAPH-11", part="what widens a boundary is told")
@pytest.mark.parametrize("after", WIDER.values(), ids=WIDER)
def test_wider_boundary_says_where_and_its_way_back_says_nothing(after: Boundary) -> None:
    assert len(list_widenings(BEFORE, after)) == 1
    assert list_widenings(after, BEFORE) == ()
    assert list_widenings(after, after) == ()


def test_boundary_without_isolation_or_denied_words_is_wider() -> None:
    apart = BEFORE.evolve(tools=(ToolGrant(name="crm.find", sandbox=True),), denied_words=("secret",))
    after = apart.evolve(tools=(ToolGrant(name="crm.find"),), denied_words=())
    assert len(list_widenings(apart, after)) == 2


@proves("R-GRAPH-10", part="all that a new boundary grants is told")
def test_finding_4_new_boundary_is_wider_by_all_that_it_allows() -> None:
    assert "calculator.* up to read_only" in list_widenings(None, BEFORE)[0]
    new = with_limits(cost_usd=None).evolve(tools=(), compensation="automatic", memory="read")
    told = " ".join(list_widenings(None, new.evolve(escalation_routes={"money": "finance"})))
    for part in (
        "allows no tool", "cost_usd none", "model_turns 20", "The model decides: tool_choice",
        "Memory: read", "finance about money", "undone with nobody asked",
    ):  # fmt: skip
        assert part in told


grants = st.lists(
    st.builds(ToolGrant, name=st.sampled_from(NAMES), risk_ceiling=st.sampled_from(RISKS)), max_size=4
).map(tuple)


@proves("R-GRAPH-11", part="no tool is widened untold, whatever patterns overlap")
@given(before=grants, after=grants, ceilings=st.tuples(st.sampled_from(RISKS), st.sampled_from(RISKS)))
def test_widenings_are_told_exactly_where_some_call_is_allowed_more(
    before: tuple[ToolGrant, ...], after: tuple[ToolGrant, ...], ceilings: tuple[Risk, Risk]
) -> None:
    one = BEFORE.evolve(tools=before, risk_ceiling=ceilings[0])
    other = BEFORE.evolve(tools=after, risk_ceiling=ceilings[1])
    wider = any(rank(other, name) > rank(one, name) for name in CALLED)
    assert bool(list_widenings(one, other)) == wider


def rank(boundary: Boundary, name: str) -> int:
    """The highest rank at which a boundary lets a tool be called; -1 for not at all."""
    grant = boundary.grant_for(name)
    return -1 if grant is None else boundary.ceiling_of(grant).rank
