"""The durable artifact of a run: a result with provenance, or a report of how far it came (R-GRAPH-15,
R-GRAPH-16)."""

from collections.abc import Mapping
from typing import Any

import orjson

from orchestrator.core.inputs import MISSING
from orchestrator.core.nodes.tool import Source, value_of
from orchestrator.core.step import View
from orchestrator.core.terminal import ENDINGS, TerminalClass, TerminalCode
from traces.core.canonical import canonical_outside


def read_output(text: str) -> Any:
    """The draft as JSON where it is JSON (also inside a code fence), else as the text itself."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped = stripped.strip("`").removeprefix("json").strip()
    try:
        return orjson.loads(stripped)
    except orjson.JSONDecodeError:
        return text


def result_body(view: View, *, partial: bool, sources: Mapping[str, Source]) -> tuple[bytes, bytes]:
    """The result document and the canonical bytes of its output."""
    output = _output(view, sources)
    untrusted = [name for name, fact in view.state.facts_in_order() if fact.trust == "untrusted"]
    document = {
        "completed": not partial,
        "partial": partial,
        "output": output,
        "facts": _facts(view),
        "unverified": _unverified(view) if partial else [],
        "rests_on_untrusted": untrusted,
        "provenance": _provenance(view),
    }
    return canonical_outside(document), canonical_outside({"output": output})


def report_body(view: View, code: TerminalCode, reason: str) -> bytes:
    """The stop status of a run that ends without a result: what, why, how far, what is safe to do next."""
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
        "output": _output(view, {}) if view.state.best else None,
        "facts": _facts(view),
        "unverified": _unverified(view),
        "provenance": _provenance(view),
        "checkpoint": {"record": view.number, "node": view.state.position},
    }
    return canonical_outside(document)


def _provenance(view: View) -> dict[str, Any]:
    """The versions the output was made under."""
    return {
        "goal": view.manifest.goal_digest,
        "graph": view.manifest.graph,
        "boundary": view.pins.boundary_digest,
        "registry": view.pins.registry_digest,
        "models": sorted({profile.model for profile in view.pins.profiles}),
        "draft": view.state.best or view.state.draft,
        "scripted": view.manifest.scripted,
    }


def _output(view: View, sources: Mapping[str, Source]) -> Any:
    if sources:
        found = {name: value_of(view, source) for name, source in sources.items()}
        return {name: value for name, value in found.items() if value is not MISSING}
    draft = view.state.best or view.state.draft
    if draft is None:
        return {name: dict(fact.values) for name, fact in view.state.facts.items()} or None
    text = view.desk.text(draft, 200_000)
    return read_output(text) if view.output_schema is not None else text


def _facts(view: View) -> dict[str, Any]:
    """Each fact with where it comes from."""
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


def _unverified(view: View) -> list[str]:
    """What the reader of a partial result must not rely on."""
    loose = [] if view.state.best == view.state.draft else ["draft"]
    return loose + [f"{call.tool} ({call.id})" for call in (*view.state.batch, *view.state.queue)]
