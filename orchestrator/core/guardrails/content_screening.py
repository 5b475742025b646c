"""Run the safety detectors over input, tool results and output (R-TOOL-24).

A finding is recorded, or makes every later change ask for approval, or closes the run and notifies
security. A detector that fails closes the run, because its finding is unknown.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple
from unicodedata import category, normalize

import orjson

from orchestrator.core.domain.graph import Interrupt
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.policy.detectors import SEVERITIES, DetectorInput, Place, Severity, discover_detectors
from orchestrator.core.workflow.node_protocol import (
    NodeContext,
    NodeResult,
    make_interrupt_result,
    trace_event,
)
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, SafetyFound
from traces.core.integrity.chain import TraceEntry

BROKEN = "detector_broken"
MOST = 8
PHASES: dict[Place, Phase] = {
    "input": Phase.POLICY_CHECK, "result": Phase.OBSERVATION_GROUNDING, "output": Phase.VALIDATION,
}  # fmt: skip


class ScreeningResult(NamedTuple):
    """The result of screening: the worst severity, its rule and the trace entries."""

    severity: Severity
    rule: str
    said: tuple[TraceEntry, ...]


def screen_content(view: NodeContext, place: Place, text: str, subject: str) -> ScreeningResult:
    """Run every enabled detector over a text."""
    worst, rule, said = SEVERITIES[0], "", []
    safety = [policy.safety for policy in view.policies]
    seen = DetectorInput(text, normalize_for_detection(text), view.pins.boundary.denied_words)
    for name, severity, found in run_detectors(seen, place, safety):
        body = SafetyFound(detector=name, rule=found, place=place, subject=subject[:200], severity=severity)
        said.append(trace_event(PHASES[place], body))
        if SEVERITIES.index(severity) > SEVERITIES.index(worst):
            worst, rule = severity, f"{name}:{found}"
    return ScreeningResult(worst, rule, tuple(said))


def run_detectors(
    seen: DetectorInput, place: Place, settings: Iterable["dict[str, Severity]"]
) -> list[tuple[str, Severity, str]]:
    """Return each detector's findings with their severity; of several settings the stricter applies.

    Fails closed.
    """
    found: list[tuple[str, Severity, str]] = []
    held = tuple(settings)
    for name, detector in discover_detectors().items():
        usual = detector.severity[place]
        meant = [setting.get(f"{place}:{name}", usual) for setting in held]
        severity = max(meant, key=SEVERITIES.index, default=usual)
        if severity == "off":
            continue
        try:
            found.extend((name, severity, rule) for rule in detector.find(seen))
        except Exception:  # noqa: BLE001 - after any failure the finding of the detector is unknown
            found.append((name, "stop", BROKEN))
    return found


def with_safety_alarm(state: RunState, screened: ScreeningResult) -> RunState:
    """Return the state with the finding recorded and, from now on, approval required for every change.

    Findings that are off or only noted leave the state unchanged.
    """
    if screened.severity in ("off", "note"):
        return state
    alarms = tuple(dict.fromkeys((*state.alarms, screened.rule)))[-MOST:]
    return state.evolve(alarms=alarms, guarded=True)


def stop_unsafe_run(
    state: RunState, screened: ScreeningResult, subject: str, said: tuple[TraceEntry, ...]
) -> NodeResult:
    """End a run in which a finding closes it, and notify security."""
    tripped = BreakerTripped(breaker="safety", reason=screened.rule, subject=subject)
    told = (*said, *screened.said, trace_event(Phase.ESCALATION_CHECK, tripped))
    return make_interrupt_result(state, Interrupt.UNSAFE, screened.rule, told)


def normalize_for_detection(text: str) -> str:
    """Normalize a text for detection.

    Compatibility forms are folded, invisible characters removed, case is lowered, and white space becomes
    single blanks.
    """
    shown = text
    if not text.isascii():
        folded = normalize("NFKC", text)
        shown = "".join([char for char in folded if char.isascii() or category(char) != "Cf"])
    return "\n".join(" ".join(line.split()) for line in shown.casefold().splitlines())


def words_of(body: bytes) -> str:
    """Return the strings of a JSON document, one a line; text that is not JSON is returned as it is."""
    try:
        level: list[Any] = [orjson.loads(body)]
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "backslashreplace")
    found: list[str] = []
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                found.append(item)
            elif isinstance(item, dict):
                found.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = below
    return "\n".join(found)
