"""Rules by tool, argument and origin, and when one policy is weaker than another."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.core.policy.provenance.value_kinds import KINDS
from orchestrator.core.policy.rules import (
    ORIGINS,
    RANK,
    SHIPPED,
    STANDINGS,
    Decision,
    Leaf,
    Policy,
    Rule,
    argument_of,
    find_weaker_cases,
    is_weaker_policy,
)
from tests.proves import proves

TOOLS = ("mail.send", "mail.find", "pay", "pay.out")
RULES = st.builds(
    Rule,
    name=st.just("r"),
    decision=st.sampled_from(["allow", "gate", "deny"]),
    reason=st.just("Because."),
    tools=st.lists(st.sampled_from(["mail.*", "mail.send", "pay", "pay.*"]), max_size=2).map(tuple),
    arguments=st.lists(st.sampled_from(["/to", "/items", "/items/to"]), max_size=2).map(tuple),
    kinds=st.lists(st.sampled_from(KINDS), max_size=2).map(tuple),
    origins=st.lists(st.sampled_from(ORIGINS), max_size=2).map(tuple),
    scope=st.lists(st.sampled_from(STANDINGS), max_size=2).map(tuple),
    mutating=st.sampled_from([True, False, None]),
    sensitive=st.sampled_from([True, False, None]),
    chosen=st.sampled_from(["model", "plan", None]),
    carries=st.sampled_from([True, False, None]),
)
POLICIES = st.lists(RULES, max_size=4).map(
    lambda rules: Policy(rules=tuple(rule.evolve(name=f"r{n}") for n, rule in enumerate(rules)))
)
LEAVES = st.builds(
    Leaf,
    tool=st.sampled_from(TOOLS),
    mutating=st.booleans(),
    argument=st.sampled_from(["/to", "/items/to", "/items/text", "/text"]),
    kind=st.sampled_from(KINDS),
    sensitive=st.booleans(),
    origin=st.sampled_from(ORIGINS),
    standing=st.sampled_from(STANDINGS),
    chosen=st.sampled_from(["model", "plan"]),
    carries=st.booleans(),
)


def leaf(**more: Any) -> Leaf:
    """A recipient that a model read somewhere."""
    usual = Leaf("mail.send", True, "/to", "recipient", True, "untrusted_observation", "unnamed", "model")
    return usual._replace(**more)


def decision_of(policy: Policy, found: Leaf) -> Decision:
    """What a policy says of a leaf."""
    rule = policy.rule_for(found)
    return "allow" if rule is None else rule.decision


@proves("R-TOOL-17", part="a rule by tool, argument and origin")
@pytest.mark.parametrize(
    ("found", "decision"),
    [
        (leaf(), "deny"),
        (leaf(origin="model"), "deny"),
        (leaf(origin="goal"), "allow"),
        (leaf(origin="trusted_fact"), "allow"),
        (leaf(origin="person"), "allow"),
        (leaf(standing="inside"), "gate"),
        (leaf(chosen="plan"), "gate"),
        (leaf(kind="account"), "deny"),
        (leaf(kind="url"), "deny"),
        (leaf(kind="command"), "deny"),
        (leaf(kind="command", origin="model"), "deny"),
        (leaf(kind="command", origin="model", standing="inside"), "gate"),
        (leaf(kind="amount"), "gate"),
        (leaf(kind="amount", standing="outside"), "deny"),
        (leaf(kind="text", origin="model"), "gate"),
        (leaf(kind="text", origin="model", sensitive=False), "allow"),
        (leaf(mutating=False), "allow"),
        (leaf(mutating=False, kind="url", carries=True), "deny"),
    ],
)
def test_what_ships_denies_strange_targets_and_gates_what_nobody_vouches_for(
    found: Leaf, decision: str
) -> None:
    assert decision_of(SHIPPED, found) == decision


def test_the_first_rule_that_fits_decides() -> None:
    own = Rule(name="ours", decision="allow", reason="Ours.", tools=("mail.*",), arguments=("/to",))
    policy = SHIPPED.evolve(rules=(own, *SHIPPED.rules))
    assert decision_of(policy, leaf()) == "allow"
    assert decision_of(policy, leaf(argument="/cc")) == "deny"
    assert decision_of(policy, leaf(tool="post.send")) == "deny"


@proves("R-TOOL-17", part="what is weaker is found")
@settings(max_examples=40)
@given(POLICIES, POLICIES, LEAVES)
def test_a_policy_that_is_called_no_weaker_is_weaker_nowhere(
    before: Policy, after: Policy, found: Leaf
) -> None:
    if not is_weaker_policy(before, after):
        assert RANK[decision_of(after, found)] >= RANK[decision_of(before, found)]


@settings(max_examples=25)
@given(POLICIES, POLICIES)
def test_every_case_that_is_named_is_weaker_indeed(before: Policy, after: Policy) -> None:
    for case in find_weaker_cases(before, after):
        assert RANK[decision_of(after, case.leaf)] < RANK[decision_of(before, case.leaf)]


@settings(max_examples=15)
@given(POLICIES)
def test_a_policy_is_no_weaker_than_itself(policy: Policy) -> None:
    assert not is_weaker_policy(policy, policy.evolve(version=2))


def test_letting_additions_pass_is_weaker() -> None:
    assert is_weaker_policy(SHIPPED, SHIPPED.evolve(after_untrusted="allow"))
    assert not is_weaker_policy(SHIPPED, SHIPPED.evolve(after_untrusted="deny"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Not so"},
        {"decision": "maybe"},
        {"tools": ("../x",)},
        {"arguments": ("to",)},
        {"kinds": ("planet",)},
        {"reason": ""},
        {"more": 1},
    ],
)
def test_a_rule_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate({"name": "a", "decision": "deny", "reason": "x"} | wrong)


def test_two_rules_of_one_name_are_refused() -> None:
    rule = SHIPPED.rules[0]
    with pytest.raises(ValidationError):
        Policy(rules=(rule, rule))


def test_places_in_lists_do_not_count() -> None:
    assert argument_of("/items/3/to") == "/items/to"
    assert argument_of("/0") == "/"
