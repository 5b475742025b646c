"""The plan of a simulated run, from what its transitions and events say."""

from orchestrator.core.readmodel.run_plan import (
    CheckFinding,
    Move,
    PlanStep,
    RunPlan,
    TracedCall,
    build_run_plan,
    carried_calls,
)
from tests.core.orchestrator.simulation import Simulation
from traces.core.events.trace_events import (
    CallAnsweredNot,
    CallAttempted,
    CallRequested,
    CompletionChecked,
    FactCommitted,
    FailureCommitted,
    ModelReplied,
    OutputVerified,
    TraceEventBody,
)


def plan(run: Simulation) -> RunPlan:
    """The plan as the run stands."""
    return build_run_plan(run.graph, run.manifest, run.state, moves(run), asked(run), said(run))


def moves(run: Simulation) -> tuple[Move, ...]:
    """The transitions as their records have them."""
    return tuple(Move(step.source, step.outcome, step.target) for step in run.transitions)


def asked(run: Simulation) -> tuple[TracedCall, ...]:
    """The calls asked for since the newest reply, and whether each was sent; a retry begins with some."""
    first = run.fed[0][0] if run.fed else run.state
    found = list(carried_calls(first)) if run.manifest.began else []
    for body in _bodies(run):
        if isinstance(body, ModelReplied):
            found = []
        elif isinstance(body, CallRequested):
            found.append(TracedCall(body.call, body.tool, body.by))
        elif isinstance(body, CallAttempted):
            found = [one._replace(sent=one.sent or one.call == body.call) for one in found]
        elif isinstance(body, CallAnsweredNot | FactCommitted | FailureCommitted):
            found = [one._replace(status=_status(body)) if one.call == body.call else one for one in found]
    return tuple(found)


def said(run: Simulation) -> CheckFinding | None:
    """What the newest check said."""
    found = [
        CheckFinding(getattr(body, "validator", ""), body.detail)
        for body in _bodies(run)
        if isinstance(body, OutputVerified | CompletionChecked)
    ]
    return found[-1] if found else None


def shown(found: RunPlan) -> list[tuple[str, str]]:
    """Each step's name and standing."""
    return [(step.name, step.standing.value) for step in found.steps]


def step(found: RunPlan, name: str) -> PlanStep:
    """The one step of a tool or node."""
    (one,) = [step for step in found.steps if step.name == name]
    return one


def _status(body: CallAnsweredNot | FactCommitted | FailureCommitted) -> str:
    if isinstance(body, CallAnsweredNot):
        return body.status
    return "ok" if isinstance(body, FactCommitted) else "error"


def _bodies(run: Simulation) -> list[TraceEventBody]:
    return [word.body for step in run.transitions for word in step.said]
