"""Checks 15 to 17: how runs of this graph end (R-GRAPH-2, R-GRAPH-15)."""

from collections.abc import Iterator

from orchestrator.core.common.run_status import ENDINGS, TerminalClass, TerminalCode
from orchestrator.core.compiler.checks.diagnostics import Diagnostic, make_diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing, collect_reachable_nodes
from orchestrator.core.compiler.checks.reachability import STRAIGHT
from orchestrator.core.domain.graph import EdgeSpec, Interrupt

C = TerminalCode
MUST_WRITE = ("trace", "status", "release", "final_state")

# What an interrupt may end in: its own code, and nothing that would tell another story.
BY_INTERRUPT: dict[Interrupt, tuple[TerminalCode, ...]] = {
    Interrupt.CANCELLED: (C.USER_CANCEL,),
    Interrupt.BUDGET_EXHAUSTED: (C.BUDGET_EXHAUSTED,),
    Interrupt.TIMEOUT: (C.TIMEOUT,),
    Interrupt.EXPIRED: (C.TIMEOUT,),
    Interrupt.UNSAFE: (C.UNSAFE_DETECTION,),
    Interrupt.PERMISSION_DENIED: (C.PERMISSION_DENIED,),
    Interrupt.DEPENDENCY_UNAVAILABLE: (C.UNAVAILABLE_DEP,),
    Interrupt.REPEATED_FAILURE: (C.REPEATED_FAILURE,),
}

# What an outcome may end in, where it leads straight to an end (first document, termination-code table).
BY_OUTCOME: dict[tuple[str, str], tuple[TerminalCode, ...]] = {
    ("goal_intake", "unparseable"): (C.VALIDATION_FAIL, C.MISSING_INFO, C.IMPOSSIBLE),
    ("goal_intake", "against_policy"): (C.PERMISSION_DENIED, C.IMPOSSIBLE),
    ("goal_intake", "unsafe"): (C.UNSAFE_DETECTION,),
    ("classify_intent", "ambiguous"): (C.AMBIGUOUS_INTENT,),
    ("classify_intent", "low_confidence"): (C.LOW_CONFIDENCE, C.AMBIGUOUS_INTENT),
    ("resolve_scope", "missing_info"): (C.MISSING_INFO,),
    ("resolve_scope", "denied"): (C.PERMISSION_DENIED,),
    ("init_state", "failed"): (C.VALIDATION_FAIL, C.UNAVAILABLE_DEP),
    ("act", "refused"): (C.IMPOSSIBLE, C.UNSAFE_DETECTION),
    ("act", "empty"): (C.VALIDATION_FAIL,),
    ("act", "model_unavailable"): (C.UNAVAILABLE_DEP,),
    ("respond", "refused"): (C.IMPOSSIBLE, C.UNSAFE_DETECTION),
    ("respond", "empty"): (C.VALIDATION_FAIL,),
    ("respond", "model_unavailable"): (C.UNAVAILABLE_DEP,),
    ("tool", "missing_info"): (C.MISSING_INFO,),
    ("check_tool", "malformed"): (C.VALIDATION_FAIL,),
    ("check_tool", "missing_info"): (C.MISSING_INFO,),
    ("check_tool", "unregistered"): (C.PERMISSION_DENIED, C.IMPOSSIBLE),
    ("check_tool", "needs_approval"): (C.CONFIRM_REQUIRED,),
    ("check_tool", "denied"): (C.PERMISSION_DENIED, C.REPEATED_FAILURE),
    ("check_tool", "over_budget"): (C.BUDGET_EXHAUSTED,),
    ("invoke_tool", "circuit_open"): (C.UNAVAILABLE_DEP,),
    ("verify_observation", "conflict"): (C.SOURCE_CONFLICT,),
    ("verify_observation", "low_confidence"): (C.LOW_CONFIDENCE, C.REVIEW_REQUIRED),
    ("verify_observation", "unsafe"): (C.UNSAFE_DETECTION,),
    ("check_completion", "stalled"): (C.REPEATED_FAILURE,),
    ("check_completion", "conflict"): (C.SOURCE_CONFLICT,),
    ("check_completion", "low_confidence"): (C.LOW_CONFIDENCE, C.REVIEW_REQUIRED),
    ("check_completion", "blocked"): (C.REPEATED_FAILURE, C.UNAVAILABLE_DEP),
    ("check_completion", "impossible"): (C.IMPOSSIBLE,),
    ("verify_output", "failed"): (C.VALIDATION_FAIL,),
    ("verify_output", "needs_review"): (C.REVIEW_REQUIRED,),
    ("verify_output", "rejected"): (C.REVIEW_REQUIRED,),
    ("approval", "rejected"): (C.CONFIRM_REQUIRED, C.REVIEW_REQUIRED),
    ("approval", "expired"): (C.CONFIRM_REQUIRED, C.REVIEW_REQUIRED),
    ("ask_user", "expired"): (C.MISSING_INFO, C.AMBIGUOUS_INTENT),
}
# These must have such an end somewhere ahead: escalation that is refused, and time that runs out on a person.
MUST_END = (("approval", "rejected"), ("approval", "expired"), ("ask_user", "expired"))


def diagnose_missing_writes(drawing: Drawing) -> Iterator[Diagnostic]:
    """15: a terminal node writes trace, status, release of resources and final state."""
    for node in drawing.terminals():
        if node.config is None:
            continue
        writes = tuple(node.config.writes)
        missing = [name for name in MUST_WRITE if name not in writes]
        if missing:
            yield make_diagnostic(15, f"node {node.id} does not write {', '.join(missing)}", node=node.id)
        if len(writes) != len(dict.fromkeys(writes)):
            yield make_diagnostic(15, f"node {node.id} names something it writes twice", node=node.id)


def diagnose_missing_endings(drawing: Drawing) -> Iterator[Diagnostic]:
    """16: success, failure, cancellation, escalation, expiry and exhaustion each have a path to an end
    of their own.
    """
    met = collect_reachable_nodes(
        drawing.next_of(), (drawing.spec.entry,) if drawing.spec.entry in drawing.nodes else ()
    )
    codes = dict.fromkeys(code for node in met if (code := _get_terminal_code(drawing, node)) is not None)
    if C.SUCCESS not in codes:
        yield make_diagnostic(16, "success has no path to a terminal node with SUCCESS")
    if not any(ENDINGS[code].terminal_class is TerminalClass.FAIL for code in codes):
        yield make_diagnostic(16, "failure has no path to a terminal node")
    for interrupt, name in (
        (Interrupt.CANCELLED, "cancellation"),
        (Interrupt.EXPIRED, "expiry"),
        (Interrupt.BUDGET_EXHAUSTED, "budget exhaustion"),
    ):
        if not _can_reach_code(drawing, drawing.spec.interrupts.get(interrupt), BY_INTERRUPT[interrupt]):
            yield make_diagnostic(
                16, f"{name} has no path to a terminal node with {_format_codes(BY_INTERRUPT[interrupt])}"
            )
    for edge in _closing_edges(drawing):
        wanted = BY_OUTCOME[drawing.kind(edge.source), edge.outcome]
        if not _can_reach_code(drawing, edge.target, wanted):
            sentence = (
                f"{edge.source}.{edge.outcome} has no path to a terminal node with {_format_codes(wanted)}"
            )
            yield make_diagnostic(16, sentence, edge=edge)


def _closing_edges(drawing: Drawing) -> Iterator[EdgeSpec]:
    """Of each outcome that must be able to end, one edge that can: the first that does, else the last."""
    for node in drawing.nodes.values():
        for kind, outcome in MUST_END:
            edges = [
                edge for edge in drawing.leaving[node.id] if node.kind == kind and edge.outcome == outcome
            ]
            wanted = BY_OUTCOME[kind, outcome]
            if edges:
                yield next(
                    (edge for edge in edges if _can_reach_code(drawing, edge.target, wanted)), edges[-1]
                )


def diagnose_mismatched_codes(drawing: Drawing) -> Iterator[Diagnostic]:
    """17: where an outcome or an interrupt leads straight to an end, the end's code says what happened."""
    for interrupt, target in drawing.spec.interrupts.items():
        for code, node in _straight_codes(drawing, target):
            if code not in BY_INTERRUPT[interrupt]:
                wanted = _format_codes(BY_INTERRUPT[interrupt])
                yield make_diagnostic(
                    17, f"interrupt {interrupt.value} ends in {code.value}; it must be {wanted}", node=node
                )
    for edge in drawing.edges:
        codes = BY_OUTCOME.get((drawing.kind(edge.source), edge.outcome))
        if codes is None:
            continue
        for code, _ in _straight_codes(drawing, edge.target):
            if code not in codes:
                sentence = (
                    f"{edge.source}.{edge.outcome} ends in {code.value}; it must be {_format_codes(codes)}"
                )
                yield make_diagnostic(17, sentence, edge=edge)


def _straight_codes(drawing: Drawing, start: str) -> Iterator[tuple[TerminalCode, str]]:
    # Behind a branch the workflow's own predicate says which end it is.
    terminals, _ = drawing.straight_ends(start, tuple(kind for kind in STRAIGHT if kind != "branch"))
    for node in terminals:
        code = _get_terminal_code(drawing, node)
        if code is not None:
            yield code, node


def _can_reach_code(drawing: Drawing, start: str | None, wanted: tuple[TerminalCode, ...]) -> bool:
    if start is None or start not in drawing.nodes:
        return False
    return any(
        _get_terminal_code(drawing, node) in wanted
        for node in collect_reachable_nodes(drawing.next_of(), (start,))
    )


def _get_terminal_code(drawing: Drawing, node: str) -> TerminalCode | None:
    return getattr(drawing.nodes[node].config, "code", None)


def _format_codes(codes: tuple[TerminalCode, ...]) -> str:
    return " or ".join(code.value for code in codes)
