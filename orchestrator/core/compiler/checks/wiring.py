"""Checks 18 and 19: which kind may follow which outcome, as one table (R-GRAPH-20).

`TABLE` is the first document's graph-component table for the kinds that exist; ESCALATE is spelled out as
the gate, the question or the end that it means there. `EXCEPTIONS` are the additional moves, each under its
name with its reason.
"""

from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.core.common.run_status import ENDINGS, TerminalClass, TerminalCode
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing
from orchestrator.core.domain.graph import EdgeSpec

Outcome = tuple[str, str]
ENDS = ("terminate", "finalize")
QUEUE_GUARD = "queue_left"

TABLE: dict[Outcome, tuple[str, ...]] = {
    ("goal_intake", "accepted"): ("classify_intent",),
    ("goal_intake", "unparseable"): ENDS,
    ("goal_intake", "against_policy"): ENDS,
    ("goal_intake", "unsafe"): ENDS,
    ("classify_intent", "classified"): ("resolve_scope", *ENDS),
    ("classify_intent", "ambiguous"): ("ask_user", *ENDS),
    ("classify_intent", "low_confidence"): ("ask_user", *ENDS),
    ("resolve_scope", "resolved"): ("init_state",),
    ("resolve_scope", "missing_info"): ("ask_user", *ENDS),
    ("resolve_scope", "denied"): ENDS,
    ("init_state", "ready"): (),
    ("init_state", "failed"): ENDS,
    ("act", "requested"): ("check_tool",),
    ("act", "answered"): ("verify_output",),
    ("act", "refused"): ENDS,
    ("act", "empty"): ENDS,
    ("act", "model_unavailable"): ENDS,
    ("tool", "requested"): ("check_tool",),
    ("tool", "missing_info"): ("ask_user", *ENDS),
    ("respond", "drafted"): ("verify_output",),
    ("respond", "refused"): ENDS,
    ("respond", "empty"): ENDS,
    ("respond", "model_unavailable"): ENDS,
    ("branch", "holds"): ("check_completion", "verify_output", "ask_user", *ENDS),
    ("branch", "fails"): ("check_completion", "verify_output", "ask_user", *ENDS),
    ("check_tool", "eligible"): ("invoke_tool",),
    ("check_tool", "malformed"): ENDS,
    ("check_tool", "missing_info"): ("ask_user", *ENDS),
    ("check_tool", "unregistered"): ENDS,
    ("check_tool", "needs_approval"): ("approval", *ENDS),
    ("check_tool", "denied"): ENDS,
    ("check_tool", "over_budget"): ENDS,
    ("invoke_tool", "dispatched"): ("capture_observation",),
    ("invoke_tool", "circuit_open"): ENDS,
    ("capture_observation", "captured"): ("verify_observation",),
    ("verify_observation", "verified"): ("update_state",),
    ("verify_observation", "failed"): ("update_state", *ENDS),
    ("verify_observation", "conflict"): ENDS,
    ("verify_observation", "low_confidence"): ENDS,
    ("verify_observation", "unsafe"): ENDS,
    ("update_state", "committed"): ("check_completion",),
    ("check_completion", "complete"): ("verify_output",),
    ("check_completion", "incomplete"): ENDS,
    ("check_completion", "stalled"): ENDS,
    ("check_completion", "conflict"): ENDS,
    ("check_completion", "low_confidence"): ENDS,
    ("check_completion", "blocked"): ENDS,
    ("check_completion", "impossible"): ENDS,
    ("verify_output", "passed"): ("finalize",),
    ("verify_output", "failed"): ENDS,
    ("verify_output", "needs_review"): ENDS,
    ("verify_output", "rejected"): ENDS,
    ("approval", "approved"): ("check_tool",),
    ("approval", "edited"): ("check_tool",),
    ("approval", "rejected"): ENDS,
    ("approval", "revised"): (),
    ("approval", "expired"): ENDS,
    ("ask_user", "answered"): ("resolve_scope",),
    ("ask_user", "expired"): ENDS,
    ("finalize", "finalized"): ("terminate",),
}


class Further(NamedTuple):
    """Additional targets of some outcomes, and why they are safe."""

    outcomes: tuple[Outcome, ...]
    targets: tuple[str, ...]
    why: str


_ANSWERED_NOT: tuple[Outcome, ...] = (
    ("check_tool", "malformed"), ("check_tool", "missing_info"), ("check_tool", "unregistered"),
    ("check_tool", "denied"), ("invoke_tool", "circuit_open"), ("approval", "rejected"),
    ("approval", "revised"),
)  # fmt: skip
_WORK = ("act", "tool", "respond", "branch")
EXCEPTIONS: dict[str, Further] = {
    "no-plan": Further(
        (("init_state", "ready"), ("ask_user", "answered"), ("branch", "holds"), ("branch", "fails")),
        _WORK,
        "without a planner the table's Plan is the workflow's first, next or other piece of work",
    ),
    "the-queue-goes-on": Further(
        (*_ANSWERED_NOT, ("update_state", "committed")),
        ("check_tool",),
        "the next requested call has its own check (R-GRAPH-19)",
    ),
    "the-model-hears": Further(
        _ANSWERED_NOT,
        ("act", "check_completion"),
        "a call that did not run has its structured result, and the work goes on with it (R-GRAPH-19)",
    ),
    "the-writer-hears": Further(
        (("approval", "revised"),),
        ("respond",),
        "what a person said of a call made of a draft goes to whoever wrote the draft",
    ),
    "act-again": Further(
        (("check_completion", "incomplete"), ("check_completion", "complete")),
        _WORK,
        "the table's Check -> Plan; a tool loop is complete only by an answer",
    ),
    "fixed-order": Further(
        (("update_state", "committed"),),
        (*_WORK, *ENDS),
        "a workflow of fixed calls knows the next one; its end is checked when all are done",
    ),
    "draft-in-use": Further(
        (("respond", "drafted"), ("verify_output", "passed")),
        (*_WORK, "check_completion"),
        "a draft is material for the next piece of work; a call made of it climbs its own ladder",
    ),
    "repair-by-asking-again": Further(
        (("verify_output", "failed"),),
        ("act", "respond"),
        "the failed check goes to the model as feedback, bounded by guards and the budget",
    ),
}


def targets_of(kind: str, outcome: str) -> tuple[str, ...]:
    """Return the kinds that may follow: the table's, then those of the named exceptions."""
    further = (given.targets for given in EXCEPTIONS.values() if (kind, outcome) in given.outcomes)
    return tuple(
        dict.fromkeys((*TABLE.get((kind, outcome), ()), *(kind for targets in further for kind in targets)))
    )


def diagnose_forbidden_targets(drawing: Drawing) -> Iterator[Diagnostic]:
    """18: an edge leads only to the kinds that the table or a named exception allows."""
    for edge in drawing.edges:
        source, target = drawing.kind(edge.source), drawing.kind(edge.target)
        if edge.outcome not in drawing.kinds[source].outcomes:
            continue
        may = targets_of(source, edge.outcome)
        if target not in may:
            sentence = f"{source}.{edge.outcome} may lead to {', '.join(may) or 'nothing'}, not to {target}"
            yield make_diagnostic(18, sentence, edge=edge)


def queue_kept(drawing: Drawing) -> Iterator[Diagnostic]:
    """18: check_tool is entered again only while a call waits, and no other work begins before that.

    Spec: R-GRAPH-19.
    """
    several = any(node.kind == "act" for node in drawing.nodes.values())
    kept: set[tuple[str, str]] = set()
    for edge in drawing.edges:
        outcome = (drawing.kind(edge.source), edge.outcome)
        if outcome not in (*_ANSWERED_NOT, ("update_state", "committed")):
            continue
        target, place = drawing.kind(edge.target), (edge.source, edge.outcome)
        goes_on = edge.guard is not None and edge.guard.name == QUEUE_GUARD
        if target == "check_tool" and not goes_on:
            yield make_diagnostic(
                18, f"without the guard {QUEUE_GUARD} there may be no call to check", edge=edge
            )
        elif target == "check_tool":
            kept.add(place)
        elif target not in ENDS and several and place not in kept and not _is_fixed_call_edge(drawing, edge):
            sentence = f"a requested call may still wait: check_tool under {QUEUE_GUARD} must come first"
            yield make_diagnostic(18, sentence, edge=edge)


def _is_fixed_call_edge(drawing: Drawing, edge: EdgeSpec) -> bool:
    """Return whether the edge belongs to a fixed call, which never has other calls behind it."""
    if edge.guard is None or edge.guard.name != "asked_by":
        return False
    asker = str(edge.guard.parameters.get("node", ""))
    return asker in drawing.nodes and drawing.kind(asker) == "tool"


def verified_success(drawing: Drawing) -> Iterator[Diagnostic]:
    """19: SUCCESS is reached only through finalize, and finalize only through verify_output.passed.

    Spec: R-GRAPH-20.
    """
    for edge in drawing.edges:
        yield from _entering_success(drawing, edge)
        if drawing.kind(edge.target) == "finalize" and not _is_partial_result(drawing, edge.target):
            yield from _entering_result(drawing, edge)
    for interrupt, target in drawing.spec.interrupts.items():
        if (
            target in drawing.nodes
            and drawing.kind(target) == "finalize"
            and not _is_partial_result(drawing, target)
        ):
            sentence = f"interrupt {interrupt.value} leads to {target}, which is not marked partial"
            yield make_diagnostic(19, sentence, node=target)


def _entering_result(drawing: Drawing, edge: EdgeSpec) -> Iterator[Diagnostic]:
    if drawing.kind(edge.source) != "verify_output" or edge.outcome != "passed":
        sentence = f"{edge.target} is not marked partial: only verify_output.passed may lead there"
        yield make_diagnostic(19, sentence, edge=edge)
    elif getattr(drawing.nodes[edge.source].config, "criteria", True) is False:
        sentence = f"{edge.source} does not ask for the goal's criteria, so nothing may be finalized on it"
        yield make_diagnostic(19, sentence, edge=edge)


def _entering_success(drawing: Drawing, edge: EdgeSpec) -> Iterator[Diagnostic]:
    code = getattr(drawing.nodes[edge.target].config, "code", None)
    if code is None or ENDINGS[code].terminal_class is not TerminalClass.COMMIT:
        return
    if drawing.kind(edge.source) != "finalize":
        yield make_diagnostic(19, f"{code.value} is reached without finalize", edge=edge)
    elif code is TerminalCode.SUCCESS and _is_partial_result(drawing, edge.source):
        yield make_diagnostic(19, "SUCCESS is reached from a finalize that is marked partial", edge=edge)


def _is_partial_result(drawing: Drawing, node: str) -> bool:
    return bool(getattr(drawing.nodes[node].config, "partial", False))
