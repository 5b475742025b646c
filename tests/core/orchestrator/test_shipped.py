"""What ships: the workflows compile, the boundaries say what the tables say (R-GRAPH-10, R-GRAPH-11)."""

from decimal import Decimal

import pytest
import yaml

from budgets.core.limit_profiles import PROFILES
from orchestrator import bundled_content
from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.core.domain.graph import CompiledGraph, Interrupt
from tests.proves import proves

TIERS = {
    "tool-loop": 6, "support-refund": 4, "order-fulfilment": 4, "research-brief": 6, "incident-triage": 6,
    "support-ticket": 4,
}  # fmt: skip
PROFILE_SLUGS = ("research", "coding", "support", "procurement", "sre")


def shipped(slug: str) -> CompiledGraph:
    spec = bundled_content.get_bundled_workflow(slug)
    return compile_graph(
        spec,
        boundary=bundled_content.get_bundled_boundary(spec.boundary),
        prompts=bundled_content.load_bundled_prompts(),
    )


def targets(graph: CompiledGraph, node: str, outcome: str) -> list[tuple[str | None, str]]:
    return [(edge.guard.name if edge.guard else None, edge.target) for edge in graph.edges_of(node, outcome)]


def ends_in(graph: CompiledGraph, node: str) -> TerminalCode:
    """The code behind a node, through a partial result where there is one."""
    while graph.nodes[node].kind != "terminate":
        node = graph.edges_of(node, "finalized")[0].target
    code: TerminalCode = graph.nodes[node].config.code
    return code


@proves("R-GRAPH-19", part="shipped")
@pytest.mark.parametrize(("slug", "tier"), list(TIERS.items()))
def test_the_shipped_workflows_compile_at_their_tier(slug: str, tier: int) -> None:
    graph = shipped(slug)
    assert graph.spec.tier == graph.tier == tier


@proves("R-GRAPH-19", part="every call has its result before the model goes on")
@pytest.mark.parametrize("refused", ["malformed", "missing_info", "unregistered", "denied"])
def test_a_call_that_may_not_run_lets_the_queue_go_on(refused: str) -> None:
    found = targets(shipped("tool-loop"), "check", refused)
    assert found[-2:] == [("queue_left", "check"), (None, "progress")]
    assert found[:-2] == ([("malformed_spent", "end-invalid")] if refused == "malformed" else [])


@proves("R-GRAPH-19", part="only an answer completes the loop")
def test_only_an_answer_leads_out_of_the_tool_loop() -> None:
    graph = shipped("tool-loop")
    assert targets(graph, "act", "answered") == [(None, "judge")]
    assert (
        targets(graph, "progress", "complete") == targets(graph, "progress", "incomplete") == [(None, "act")]
    )


def test_refused_money_ends_the_refund_before_anything_happens() -> None:
    graph = shipped("support-refund")
    assert targets(graph, "gate", "rejected") == targets(graph, "gate", "expired") == [(None, "end-refused")]
    assert ends_in(graph, "end-refused") is TerminalCode.CONFIRM_REQUIRED


def test_the_message_is_checked_before_anybody_is_asked_to_send_it() -> None:
    graph = shipped("support-refund")
    assert targets(graph, "draft", "drafted") == [(None, "judge-draft")]
    assert targets(graph, "judge-draft", "passed") == [(None, "send")]


def test_the_refund_follows_the_order_of_its_facts() -> None:
    committed = shipped("support-refund").edges_of("update", "committed")
    by_asker = [
        (edge.guard.parameters["node"], edge.target)
        for edge in committed
        if edge.guard and edge.guard.name == "asked_by"
    ]
    assert by_asker == [("lookup", "evaluate"), ("evaluate", "refundable"), ("refund", "draft")]


@proves("R-GRAPH-5", part="shipped")
@pytest.mark.parametrize("slug", TIERS)
def test_every_interrupt_ends_in_its_own_code(slug: str) -> None:
    graph = shipped(slug)
    found = {interrupt: ends_in(graph, graph.interrupts[interrupt]) for interrupt in Interrupt}
    assert found == {
        Interrupt.CANCELLED: TerminalCode.USER_CANCEL,
        Interrupt.BUDGET_EXHAUSTED: TerminalCode.BUDGET_EXHAUSTED,
        Interrupt.TIMEOUT: TerminalCode.TIMEOUT,
        Interrupt.EXPIRED: TerminalCode.TIMEOUT,
        Interrupt.UNSAFE: TerminalCode.UNSAFE_DETECTION,
        Interrupt.PERMISSION_DENIED: TerminalCode.PERMISSION_DENIED,
        Interrupt.DEPENDENCY_UNAVAILABLE: TerminalCode.UNAVAILABLE_DEP,
        Interrupt.REPEATED_FAILURE: TerminalCode.REPEATED_FAILURE,
    }


@proves("R-GRAPH-11")
@pytest.mark.parametrize("slug", PROFILE_SLUGS)
def test_a_profile_carries_its_budget_and_its_three_lists(slug: str) -> None:
    boundary = bundled_content.get_bundled_boundary(slug)
    assert boundary.budget == dict(PROFILES[slug])
    assert (
        min(len(boundary.without_approval), len(boundary.with_approval), len(boundary.fails_closed_on)) >= 3
    )


@proves("R-GRAPH-11", part="what needs a person")
def test_the_lists_are_those_of_the_risk_profile_table() -> None:
    found = {
        slug: (
            bundled_content.get_bundled_boundary(slug).with_approval[0],
            bundled_content.get_bundled_boundary(slug).fails_closed_on[0],
        )
        for slug in PROFILE_SLUGS
    }
    assert found == {
        "research": ("Persistent memory writes", "Unauthorized data access"),
        "coding": ("Pushes", "Secret exposure"),
        "support": ("Refunds", "Identity mismatch"),
        "procurement": ("Purchase orders", "Budget breach"),
        "sre": ("Restarts", "Security incident"),
    }


@proves("R-GRAPH-10", part="shipped")
def test_nothing_changes_without_a_gate_in_the_default_tool_loop() -> None:
    boundary = bundled_content.get_bundled_boundary("tool-loop-default")
    assert boundary.budget["side_effects"] == Decimal(0)
    assert boundary.grant_for("shell.run") is None


def test_a_document_must_be_a_mapping() -> None:
    with pytest.raises(TypeError):
        bundled_content.read_document("- a\n- b")
    with pytest.raises(yaml.YAMLError):
        bundled_content.read_document("a: [")


def test_every_workflow_that_ships_is_looked_at_here() -> None:
    assert set(bundled_content.load_bundled_workflows()) == set(TIERS)


@pytest.mark.parametrize("slug", TIERS)
def test_a_form_can_be_made_of_the_inputs(slug: str) -> None:
    schema = bundled_content.get_bundled_workflow(slug).input_schema
    for name, field in schema.get("properties", {}).items():
        assert {"title", "description"} <= set(field), name
        for example in [*field.get("examples", ()), *([field["default"]] if "default" in field else ())]:
            assert validate_against_schema(field, example) is None


@proves("R-GRAPH-20", part="a restart passes a person")
@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("check", "needs_approval"),
        ("gate", "rejected"),
        ("gate", "approved"),
        ("gate", "expired"),
        ("act", "requested"),
        ("progress", "incomplete"),
    ],
)
def test_a_restart_cannot_be_drawn_past_its_gate(source: str, outcome: str) -> None:
    spec = bundled_content.get_bundled_workflow("incident-triage")
    past = [
        edge.evolve(target="invoke") if (edge.source, edge.outcome) == (source, outcome) else edge
        for edge in spec.edges
    ]
    with pytest.raises(CompileFailed) as caught:
        compile_graph(spec.evolve(edges=tuple(past)))
    wiring = [fault for fault in caught.value.data["faults"] if fault["rule"] == "wiring"]
    assert f".{outcome} may lead to" in str(wiring)


def test_a_refused_restart_leaves_a_diagnosis_that_is_marked_as_a_part() -> None:
    graph = shipped("incident-triage")
    assert targets(graph, "judge", "passed") == [("refusals_spent", "undone"), (None, "finish")]
    assert ends_in(graph, "undone") is TerminalCode.PARTIAL_SUCCESS
    assert ends_in(graph, "finish") is TerminalCode.SUCCESS


@proves("R-GRAPH-2", part="criteria of the workflow")
@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        ({"validator": "wishes"}, "there is no validator wishes"),
        ({"validator": "cites", "parameters": {"many": 2}}, "validator cites has no parameter many"),
    ],
)
def test_a_workflow_asks_only_what_can_be_asked(criterion: dict[str, object], sentence: str) -> None:
    spec = bundled_content.get_bundled_workflow("tool-loop")
    nodes = [
        node.evolve(config={"acceptance": [criterion]}) if node.id == "judge" else node for node in spec.nodes
    ]
    with pytest.raises(CompileFailed) as caught:
        compile_graph(spec.evolve(nodes=tuple(nodes)))
    assert sentence in str(caught.value.data["faults"])


@proves("R-TOOL-23", part="ready goals")
def test_every_workflow_has_one_to_three_ready_goals() -> None:
    found = {
        slug: [one.slug for one in bundled_content.load_example_goals() if one.workflow == slug]
        for slug in TIERS
    }
    assert all(1 <= len(slugs) <= 3 for slugs in found.values())
    assert sum(map(len, found.values())) == len({one.slug for one in bundled_content.load_example_goals()})
    assert {one.workflow for one in bundled_content.load_example_goals()} == set(
        bundled_content.load_bundled_workflows()
    )


@pytest.mark.parametrize("starter", bundled_content.load_example_goals(), ids=lambda starter: starter.slug)
def test_a_ready_goal_fits_its_workflow(starter: bundled_content.Starter) -> None:
    assert (
        validate_against_schema(
            bundled_content.get_bundled_workflow(starter.workflow).input_schema, starter.goal.inputs
        )
        is None
    )
    assert starter.what.endswith(".")


def test_a_starter_is_no_part_of_the_version() -> None:
    spec = bundled_content.get_bundled_workflow("support-refund")
    assert "starters" not in spec.model_dump()
