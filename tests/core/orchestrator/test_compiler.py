"""Every check of the compiler trips on exactly what it is for (R-GRAPH-2, R-GRAPH-5, R-GRAPH-20)."""

from decimal import Decimal

import pytest

from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.boundary import ToolGrant
from orchestrator.core.domain.tool_spec import ReadBack, Risk, Verifier
from tests.core.orchestrator.faulty import before, faults, node, numbers, retarget
from tests.factories.graphs import Document, document, edge, end
from tests.factories.tools import BOUNDARY, PROMPT, TOOLS
from tests.proves import proves


@pytest.mark.parametrize(
    "pieces", [("tool",), ("respond",), ("act",), ("tool", "branch", "respond"), ("act", "tool")]
)
def test_the_good_ones_compile(pieces: tuple[str, ...]) -> None:
    compile_graph(document(*pieces), tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,))


@proves("R-GRAPH-1")
def test_0_a_document_of_another_shape() -> None:
    plain = document("tool") | {"colour": "red", "tier": 9}
    assert [fault["sentence"].split(":")[0] for fault in faults(plain)] == ["tier", "colour"]


def test_0_a_fraction_has_no_canonical_form() -> None:
    plain = document("tool") | {"input_schema": {"multipleOf": 0.01}}
    assert numbers(plain) == [0]


def test_1_an_id_names_one_node() -> None:
    plain = document("tool")
    plain["nodes"].append(dict(node(plain, "init")))
    assert numbers(plain) == [1]


@proves("R-GRAPH-2", part="unknown kind")
def test_2_an_unknown_kind() -> None:
    plain = document("tool")
    plain["nodes"].append({"id": "extra", "kind": "shell"})
    found = faults(plain)
    assert [(fault["number"], fault["node"]) for fault in found] == [(2, "extra")]


@proves("R-GRAPH-2", part="unknown config key")
def test_3_an_unknown_config_key() -> None:
    plain = document("tool")
    node(plain, "init")["config"] = {"colour": "red"}
    assert [fault["sentence"] for fault in faults(plain)] == [
        "node init: colour: Extra inputs are not permitted"
    ]


def test_3_a_pattern_that_is_none() -> None:
    plain = document("tool")
    node(plain, "verify")["config"] = {"unsafe": ["("]}
    assert numbers(plain) == [3]


def test_4_an_unknown_guard() -> None:
    plain = before(document("tool"), edge("classify", "classified", end("IMPOSSIBLE"), "moon_is_full"))
    assert numbers(plain) == [4]


@pytest.mark.parametrize(
    ("guard", "parameters"),
    [
        ("asked_by", {"node": "scope"}),
        ("asked_by", {"node": "model"}),
        ("facts", {"fact": "nobody"}),
        ("visited_less_than", {"node": "init", "times": 2}),
        ("intent_is", {"intent": "nobody"}),
    ],
)
def test_4_a_guard_that_could_never_hold(guard: str, parameters: Document) -> None:
    plain = before(
        document("tool", "branch", "respond"), edge("update", "committed", "branch-2", guard, **parameters)
    )
    assert numbers(plain) == [4]


def test_4_a_branch_with_an_unknown_predicate() -> None:
    plain = document("branch", "respond")
    node(plain, "branch-1")["config"] = {"predicate": {"name": "moon_is_full"}}
    assert numbers(plain) == [4]


def test_5_an_edge_to_nowhere() -> None:
    plain = before(document("tool"), edge("classify", "classified", "nowhere", "queue_left"))
    found = faults(plain)
    assert [(fault["number"], fault["edge"]) for fault in found] == [
        (5, "classify.classified [queue_left] -> nowhere")
    ]


def test_5_a_cycle_limit_through_nowhere() -> None:
    plain = document("tool")
    plain["cycles"].append({"through": "nowhere", "limit": 2})
    assert numbers(plain) == [5]


def test_6_the_entry_is_the_intake() -> None:
    assert 6 in numbers(document("tool") | {"entry": "classify"})


def test_6_one_intake_only() -> None:
    plain = document("tool")
    plain["nodes"] = [one for one in plain["nodes"] if one["id"] != "intake"]
    assert 6 in numbers(plain)


def test_6_nothing_leads_back_to_the_intake() -> None:
    assert 6 in numbers(retarget(document("tool"), "ask", "answered", "intake"))


@proves("R-GRAPH-2", part="way out")
def test_7_a_node_without_a_way_out() -> None:
    plain = document("tool")
    plain["edges"] = [one for one in plain["edges"] if one["source"] != "ask"]
    assert {7, 9} <= {*numbers(plain)}
    assert {fault["node"] for fault in faults(plain)} >= {"ask"}


@proves("R-GRAPH-2", part="outcome")
def test_8_an_outcome_of_another_kind() -> None:
    plain = before(document("tool"), edge("init", "happy", "tool-1"))
    assert numbers(plain) == [8]


@proves("R-GRAPH-2", part="outcome without edge")
def test_9_an_outcome_without_an_edge() -> None:
    plain = document("tool")
    plain["edges"] = [
        one for one in plain["edges"] if (one["source"], one["outcome"]) != ("verify", "unsafe")
    ]
    assert [(fault["number"], fault["node"]) for fault in faults(plain)] == [(9, "verify")]


@proves("R-GRAPH-2", part="unclosed guards")
def test_10_guards_that_leave_a_gap() -> None:
    plain = document("tool")
    next(one for one in plain["edges"] if one["source"] == "scope")["guard"] = {
        "name": "queue_left",
        "parameters": {},
    }
    assert numbers(plain) == [10]


def test_10_an_edge_behind_the_unguarded_one() -> None:
    plain = document("tool")
    plain["edges"].append(edge("classify", "classified", "scope"))
    assert numbers(plain) == [10]


@proves("R-GRAPH-2", part="unreachable")
def test_11_a_node_that_stands_apart() -> None:
    plain = document("tool")
    plain["nodes"].append({"id": "apart", "kind": "finalize", "config": {"partial": True}})
    plain["edges"].append(edge("apart", "finalized", end("TIMEOUT")))
    assert [(fault["number"], fault["node"]) for fault in faults(plain)] == [(11, "apart")]


@proves("R-GRAPH-2", part="no terminal ahead")
def test_12_a_node_from_which_nothing_ends() -> None:
    plain = document("branch", "respond")
    retarget(plain, "branch-1", "fails", "round")
    plain["nodes"].append({"id": "round", "kind": "branch", "config": {"predicate": {"name": "queue_left"}}})
    plain["edges"] += [edge("round", "holds", "round"), edge("round", "fails", "round")]
    found = faults(plain)
    assert [(fault["number"], fault["node"]) for fault in found if fault["number"] == 12] == [(12, "round")]


@proves("R-GRAPH-5")
def test_13_an_interrupt_that_leads_nowhere() -> None:
    plain = document("tool")
    del plain["interrupts"]["unsafe"]
    assert numbers(plain) == [13]


@proves("R-GRAPH-5", part="straight")
def test_13_an_interrupt_that_works_on() -> None:
    plain = document("tool")
    plain["interrupts"]["timeout"] = "respond-2"
    assert 13 in numbers(plain)


@proves("R-GRAPH-2", part="cycle")
def test_14_a_cycle_that_uses_nothing_up() -> None:
    plain = document("branch", "branch", "respond")
    before(plain, edge("branch-2", "fails", "branch-1", "queue_empty"))
    assert numbers(plain) == [14]


def test_14_a_call_that_never_runs_may_not_be_asked_for_again_for_ever() -> None:
    """No call of the round is dispatched, and the queue that gets shorter is filled anew in it."""
    plain = document("tool", "respond")
    plain["nodes"].append({"id": "again", "kind": "branch", "config": {"predicate": {"name": "step_failed"}}})
    plain["edges"] += [edge("again", "holds", "tool-1"), edge("again", "fails", end("IMPOSSIBLE"))]
    before(plain, edge("check", "denied", "progress", "queue_left"))
    retarget(plain, "progress", "incomplete", "again")
    assert numbers(plain) == [14]


def test_14_an_open_circuit_spends_nothing() -> None:
    plain = document("tool", "respond")
    before(plain, edge("invoke", "circuit_open", "progress", "step_failed"))
    retarget(plain, "progress", "incomplete", "tool-1")
    assert numbers(plain) == [14]


@pytest.mark.parametrize("through", ["tool-1", "check"])
def test_14_a_declared_limit_holds_where_work_starts(through: str) -> None:
    plain = document("tool", "respond")
    before(plain, edge("invoke", "circuit_open", "progress", "step_failed"))
    retarget(plain, "progress", "incomplete", "tool-1")
    plain["cycles"].append({"through": through, "limit": 5})
    if through == "tool-1":
        assert numbers(plain) == [14]
    else:
        compile_graph(plain, tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,))


def test_14_a_limit_where_no_work_starts_holds_nothing() -> None:
    plain = document("tool")
    plain["cycles"].append({"through": "classify", "limit": 2})
    assert numbers(plain) == [14]


@proves("R-GRAPH-2", part="terminal writes")
def test_15_a_terminal_node_that_keeps_its_resources() -> None:
    plain = document("tool")
    node(plain, end("TIMEOUT"))["config"]["writes"] = ["trace", "status", "final_state"]
    assert [fault["sentence"] for fault in faults(plain)] == ["node end-timeout does not write release"]


@proves("R-GRAPH-2", part="explicit ends")
def test_16_success_needs_its_end() -> None:
    plain = document("tool")
    node(plain, end("SUCCESS"))["config"]["code"] = "PARTIAL_SUCCESS"
    assert numbers(plain) == [16]


def test_16_a_refusal_needs_its_end() -> None:
    plain = document("act")
    retarget(plain, "gate", "rejected", "act-1")
    retarget(plain, "gate", "expired", end("CONFIRM_REQUIRED"))
    compile_graph(plain, tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,))
    node(plain, end("CONFIRM_REQUIRED"))["config"]["code"] = "REVIEW_REQUIRED"
    compile_graph(plain, tools=TOOLS, boundary=BOUNDARY, prompts=(PROMPT,))
    node(plain, end("CONFIRM_REQUIRED"))["config"]["code"] = "IMPOSSIBLE"
    assert {16, 17} <= {*numbers(plain)}


@proves("R-GRAPH-15", part="fitting code")
def test_17_an_end_that_tells_another_story() -> None:
    assert numbers(retarget(document("tool"), "check", "over_budget", end("TIMEOUT"))) == [17]


def test_17_an_interrupt_with_another_code() -> None:
    plain = document("tool")
    plain["interrupts"]["unsafe"] = end("TIMEOUT")
    assert numbers(plain) == [17]


@proves("R-GRAPH-20")
@pytest.mark.parametrize(
    ("source", "outcome", "target"),
    [
        ("tool-1", "requested", "invoke"),
        ("gate", "approved", "invoke"),
        ("gate", "edited", "update"),
        ("check", "needs_approval", "invoke"),
        ("check", "denied", "invoke"),
        ("check", "over_budget", "check"),
        ("invoke", "dispatched", "verify"),
        ("invoke", "dispatched", "update"),
        ("capture", "captured", "update"),
        ("verify", "unsafe", "update"),
        ("verify", "conflict", "update"),
        ("scope", "resolved", "tool-1"),
        ("respond-2", "drafted", "finish"),
        ("intake", "unsafe", "classify"),
    ],
)
def test_18_a_way_around_the_ladder(source: str, outcome: str, target: str) -> None:
    plain = before(document("tool", "respond"), edge(source, outcome, target, "step_failed"))
    found = [fault for fault in faults(plain) if fault["number"] == 18]
    assert [fault["edge"] for fault in found] == [f"{source}.{outcome} [step_failed] -> {target}"]


@proves("R-GRAPH-20", part="success")
@pytest.mark.parametrize(
    ("source", "outcome", "target"),
    [
        ("progress", "complete", end("SUCCESS")),
        ("progress", "impossible", "finish"),
        ("partial", "finalized", end("SUCCESS")),
    ],
)
def test_19_success_that_nobody_verified(source: str, outcome: str, target: str) -> None:
    plain = before(document("tool"), edge(source, outcome, target, "step_failed"))
    assert 19 in numbers(plain)


def test_19_a_result_whose_criteria_nobody_asked_for() -> None:
    plain = document("tool")
    node(plain, "judge")["config"] = {"criteria": False}
    assert numbers(plain) == [19]


def test_19_an_interrupt_into_a_whole_result() -> None:
    plain = document("tool")
    plain["interrupts"]["cancelled"] = "finish"
    assert 19 in numbers(plain)


@proves("R-GRAPH-2", part="tool permission")
def test_20_a_tool_outside_the_allow_list() -> None:
    assert numbers(document("tool") | {"tools": ["t.read"]}) == [20]
    assert numbers(document("act") | {"tools": []}) == [20]
    assert numbers(document("act") | {"tools": ["t.*", "shell"]}) == [20]


@proves("R-GRAPH-10", part="allow-list at publication")
def test_20_a_tool_outside_the_boundary() -> None:
    narrow = BOUNDARY.evolve(tools=(ToolGrant(name="t.read"),))
    low = BOUNDARY.evolve(risk_ceiling=Risk.LOCAL_WRITE)
    choosing = BOUNDARY.evolve(decision_rights=("clarification",))
    assert numbers(document("act"), boundary=narrow) == [20]
    assert numbers(document("act"), boundary=low) == [20]
    assert numbers(document("act"), boundary=choosing) == [20]


@proves("R-GRAPH-2", part="tool schema")
def test_21_arguments_that_the_tool_does_not_take() -> None:
    plain = document("tool")
    node(plain, "tool-1")["config"]["arguments"] = {"m": {"from": "constant", "value": 1}}
    assert [fault["sentence"] for fault in faults(plain)] == ["node tool-1: t.keyed has no argument m"]


def test_21_a_required_argument_is_missing() -> None:
    schema = TOOLS["t.keyed"].input_schema | {"required": ["n", "to"]}
    strict = {**TOOLS, "t.keyed": TOOLS["t.keyed"].evolve(input_schema=schema)}
    assert numbers(document("tool"), tools=strict) == [21]


def test_21_a_fact_that_nobody_commits() -> None:
    plain = document("tool")
    inner = {"from": "fact", "fact": "nobody", "pointer": "/n"}
    node(plain, "tool-1")["config"]["arguments"] = {"n": {"from": "input", "pointer": "/n", "else": inner}}
    assert numbers(plain) == [21]


@proves("R-GRAPH-2", part="tool budget")
def test_22_calls_without_a_limit() -> None:
    assert numbers(document("tool"), boundary=BOUNDARY.evolve(budget={"model_turns": Decimal(3)})) == [22]
    assert numbers(document("tool") | {"budget": {"tool_calls": "many"}}) == [22]


@proves("R-GRAPH-2", part="tool timeout")
def test_23_a_tool_slower_than_the_run() -> None:
    slow = {**TOOLS, "t.read": TOOLS["t.read"].evolve(timeout_ms=400_000)}
    assert numbers(document("act"), tools=slow) == [23]


@proves("R-TOOL-12", part="what unverified means")
def test_24_a_change_that_nobody_verifies() -> None:
    bare = {**TOOLS, "t.bare": TOOLS["t.bare"].evolve(verifier=None)}
    plain = document("act")
    assert numbers(plain, tools=bare) == [24]
    node(plain, "check")["config"] = {"unverified": "observed_only"}
    compile_graph(plain, tools=bare, boundary=BOUNDARY, prompts=(PROMPT,))


@proves("R-GRAPH-2", part="tool verification")
def test_24_a_reader_that_changes_something() -> None:
    by_writer = Verifier(name="read_back", read_back=ReadBack(tool="t.keyed", arguments={}))
    odd = {**TOOLS, "t.found": TOOLS["t.found"].evolve(verifier=by_writer)}
    assert numbers(document("act"), tools=odd) == [24]


def test_25_an_unknown_prompt() -> None:
    plain = document("respond")
    node(plain, "respond-1")["config"]["prompt"] = "unknown"
    assert numbers(plain) == [25]


@proves("R-GRAPH-8", part="too low")
def test_26_a_tier_declared_too_low() -> None:
    assert numbers(document("act") | {"tier": 4}) == [26]


@proves("R-GRAPH-8", part="justification")
def test_27_a_high_tier_without_a_reason() -> None:
    assert numbers(document("act") | {"justification": "  "}) == [27]
