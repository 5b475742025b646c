"""The durable artifact of a run: a result with provenance, or a progress report.

Spec: R-GRAPH-15, R-GRAPH-16.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from orchestrator.core.accounting.side_effects import newest_first
from orchestrator.core.calls.open_effects import HAPPENED
from orchestrator.core.common.run_status import ENDINGS, TerminalClass, TerminalCode
from orchestrator.core.workflow.goal_inputs import MISSING
from orchestrator.core.workflow.node_protocol import NodeContext
from orchestrator.core.workflow.value_sources import ValueSource, value_of
from traces.core.canonical import canonical_outside

# Full score of a draft, in thousandths of its criteria that hold (nodes/finishing/verify_output.py).
WHOLE = 1_000


def read_output(text: str) -> Any:
    """Parse the draft as JSON if it is JSON (also inside a code fence), else return the text."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped = stripped.strip("`").removeprefix("json").strip()
    try:
        return orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return text


def result_body(
    view: NodeContext, *, partial: bool, sources: Mapping[str, ValueSource]
) -> tuple[bytes, bytes]:
    """Return the result document and the canonical bytes of its output."""
    output = _select_best_output(view, sources) if partial else _select_output(view, sources)
    document = {
        "completed": not partial,
        "partial": partial,
        "output": output,
        "facts": _build_fact_records(view),
        "unverified": [],
        "rests_on_untrusted": _collect_untrusted_facts(view),
        "provenance": _build_provenance(view),
    }
    document |= left_open(view)
    if partial:
        document |= build_progress_report(view)
    return canonical_outside(document), canonical_outside({"output": output})


def report_body(view: NodeContext, code: TerminalCode, reason: str) -> bytes:
    """Build the stop status of a run without a result: what, why, progress, and the next safe action."""
    ending = ENDINGS[code]
    halted = ending.terminal_class is TerminalClass.HALT
    document = {
        "completed": False,
        "partial": True,
        "status": "halted" if halted else "stopped",
        "terminal_code": code.value,
        "reason": reason,
        "diagnosis": [f"{f.tool}: {f.error}" for f in view.state.failures],
        "next_safe_action": ending.next_safe_action,
        "output": _select_best_output(view, {}),
        "facts": _build_fact_records(view),
        **build_progress_report(view),
        **taken_back(view),
        **left_open(view),
        "rests_on_untrusted": _collect_untrusted_facts(view),
        "provenance": _build_provenance(view),
        "checkpoint": {"record": view.number, "node": view.state.position},
    }
    return canonical_outside(document)


def _build_provenance(view: NodeContext) -> dict[str, Any]:
    """Return the versions under which the output was made."""
    return {
        "goal": view.manifest.goal_digest,
        "graph": view.manifest.graph,
        "boundary": view.pins.boundary_digest,
        "registry": view.pins.registry_digest,
        "models": sorted({profile.model for profile in view.pins.profiles}),
        "draft": view.state.best or view.state.draft,
        "scripted": view.manifest.scripted,
    }


def _select_output(view: NodeContext, sources: Mapping[str, ValueSource]) -> Any:
    draft = view.state.best or view.state.draft
    if sources or draft is None:
        return _select_best_output(view, sources)
    return _text_of(view, draft)


def _select_best_output(view: NodeContext, sources: Mapping[str, ValueSource]) -> Any:
    """Return the best available output without a model call (R-BUDGET-18).

    That is the values of `sources` if there are any, else the highest-scoring draft that passed schema and
    safety, else the committed facts. None if there is nothing.
    """
    if sources:
        found = {name: value_of(view, source) for name, source in sources.items()}
        return {name: value for name, value in found.items() if value is not MISSING}
    if view.state.best is not None:
        return _text_of(view, view.state.best)
    return {name: dict(fact.values) for name, fact in view.state.facts_in_order()} or None


def _text_of(view: NodeContext, draft: str) -> Any:
    text = view.desk.text(draft, 200_000)
    return read_output(text) if view.output_schema is not None else text


def build_progress_report(view: NodeContext) -> dict[str, Any]:
    """Report the progress of an unfinished run by template: finished, open and unverified items.

    Spec: R-BUDGET-18.
    """
    finished = [f"{fact.tool} committed the fact {name}" for name, fact in view.state.facts_in_order()]
    return {
        "summary": _format_summary(view, len(finished)),
        "finished": finished,
        "open": list(view.state.still_open()),
        "unverified": _collect_unverified(view),
    }


def left_open(view: NodeContext) -> dict[str, Any]:
    """Return the changes without a result that says whether they were made; empty if none (R-TOOL-9)."""
    unknown = (one for one in view.state.opened.values() if one.error != HAPPENED)
    opened = sorted(unknown, key=lambda one: (one.call, one.tool))
    found = [{"call": one.call, "tool": one.tool, "error": one.error, "key": one.key} for one in opened]
    return {"open_effects": found} if found else {}


def taken_back(view: NodeContext) -> dict[str, Any]:
    """Return the changes that a run without a result undid, and those that it did not undo (R-TOOL-15).

    The result is empty if there are none.
    """
    deeds = newest_first(view.state)
    undone = [
        {"call": key, "tool": deed.tool, "now": deed.why} for key, deed in deeds if deed.standing == "undone"
    ]
    left = [
        {
            "call": key,
            "tool": deed.tool,
            "why": deed.why,
            "arguments": deed.arguments,
            "observation": deed.observation,
        }
        for key, deed in deeds
        if deed.standing == "left"
    ]
    return {"undone": undone, "not_undone": left} if undone or left else {}


def _format_summary(view: NodeContext, finished: int) -> str:
    state = view.state
    count = f"{finished} action{'s were' if finished != 1 else ' was'} finished and committed"
    if state.best is None:
        return f"Partial: {count}; no draft passed its checks."
    if state.best_score < WHOLE:
        share = f"{state.best_score // 10} %"
        return f"Partial: {count}; the best draft passed schema and safety and meets {share} of its criteria."
    return f"Partial: {count}; the draft shown passed its checks."


def _build_fact_records(view: NodeContext) -> dict[str, Any]:
    """Return each fact with its origin."""
    return {
        name: {
            "values": dict(fact.values),
            "tool": fact.tool,
            "call": fact.call,
            "observation": fact.digest,
            "validator": fact.validator,
            "trust": fact.trust,
            "record": fact.record,
            "version": fact.version,
        }
        for name, fact in view.state.facts.items()
    }


def _collect_unverified(view: NodeContext) -> list[str]:
    """List the parts of a partial result that its reader must not rely on."""
    state = view.state
    loose = []
    if state.best is not None and state.best_score < WHOLE:
        loose.append("output: not all of its criteria hold")
    if state.cut:
        words = state.cut.replace("_", " ")
        loose.append(f"reply: the newest one was cut short, as no more {words} was left, and is left out")
    if state.draft is not None and state.draft != state.best:
        loose.append("draft: the newest one did not pass its checks and is left out")
    loose += [f"{name}: from a source that is not trusted" for name in _collect_untrusted_facts(view)]
    return loose + [f"{call.tool} ({call.id})" for call in (*state.batch, *state.queue)]


def _collect_untrusted_facts(view: NodeContext) -> list[str]:
    return [name for name, fact in view.state.facts_in_order() if fact.trust == "untrusted"]
