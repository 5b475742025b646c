"""How one deed is taken back: by which tool, with which arguments, and why not (R-TOOL-15). It only looks."""

from collections.abc import Mapping
from typing import NamedTuple

from orchestrator.core.common.argument_parsing import fits
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import idempotency_key
from orchestrator.core.domain.run_state import Call, Deed
from orchestrator.core.domain.tool_spec import Compensation, Reversibility, ToolSpec
from orchestrator.core.guardrails.policy_evaluation import ruling
from orchestrator.core.guardrails.taint_sources import UNDO, UNDO_SINCE
from orchestrator.core.guardrails.taint_tracking import Tracer
from orchestrator.core.workflow.goal_inputs import MISSING, pointed
from orchestrator.core.workflow.node_protocol import View
from traces.core.canonical import canonical_outside, digest

# Why something is left as it is. What nobody chose is told to operators.
IN_DOUBT = "in_doubt"
OPEN = "open"
IRREVERSIBLE = "irreversible"
NO_WAY = "no_compensation"
REPORTED = "boundary_reports"
REJECTED = "rejected"
NOBODY = "nobody_decided"
STOPPED = "emergency_stop"
NOT_PERMITTED = "not_permitted"
DENIED = "policy_denied"
TOOL_STOPPED = "tool_stopped"
UNKNOWN_ARGUMENTS = "arguments_unknown"
NO_BUDGET = "over_budget"
UNANSWERED = "undo_in_doubt"
UNVERIFIED = "undo_not_verified"
CALL_FAILED = "undo_failed"
BY_CHOICE = (IRREVERSIBLE, REPORTED, REJECTED)


class Plan(NamedTuple):
    """The compensating call of one deed."""

    spec: ToolSpec
    call: Call
    wanted: str


def undo_id(key: str) -> str:
    """The id of the call that undoes the call `key`."""
    return f"u{key[1:]}"


def planned(view: View, key: str, deed: Deed) -> Plan | str:
    """The compensating call, or the word for why there is none. Raises ContentMissing for what was not
    fetched."""
    if deed.standing in (IN_DOUBT, OPEN):
        return deed.standing
    done = view.pins.by_name[deed.tool]
    if done.compensation is None:
        return IRREVERSIBLE if done.reversibility is Reversibility.IRREVERSIBLE else NO_WAY
    spec = view.pins.by_name.get(done.compensation.tool)
    if spec is None or not _within(view, spec):
        return NOT_PERMITTED
    if spec.name in view.headroom.stopped_tools or spec.name in view.state.stopped_tools:
        return TOOL_STOPPED
    body = _arguments(view, deed, done.compensation, spec)
    if body is None:
        return UNKNOWN_ARGUMENTS
    return Plan(spec, _call(view, key, spec, body), done.compensation.wanted)


def _within(view: View, spec: ToolSpec) -> bool:
    boundary = view.pins.boundary
    grant = boundary.grant_for(spec.name)
    ceiling = 0 if grant is None else min(grant.risk_ceiling.rank, boundary.risk_ceiling.rank)
    return grant is not None and view.risk_of(spec).rank <= ceiling


def _arguments(view: View, deed: Deed, way: Compensation, spec: ToolSpec) -> bytes | None:
    """The arguments as bytes; None where one cannot be found, or they do not fit the tool."""
    wanted = [deed.arguments] + ([deed.observation] if deed.observation is not None else [])
    view.desk.require(wanted)
    document = {"arguments": view.desk.json(deed.arguments), "result": _result(view, deed)}
    found = {name: pointed(document, pointer) for name, pointer in way.arguments.items()}
    if any(value is MISSING for value in found.values()):
        return None
    value = {**way.constants, **found}
    return canonical_outside(value) if fits(spec.input_schema, value) is None else None


def _result(view: View, deed: Deed) -> object:
    try:
        return None if deed.observation is None else view.desk.json(deed.observation)
    except ValueError:
        # Kept as it came, and no document: what needs it cannot be found.
        return None


def _call(view: View, key: str, spec: ToolSpec, body: bytes) -> Call:
    """One call for ever: its key depends on the deed alone, however often it is tried (R-TOOL-9)."""
    arguments, argument_digest = view.desk.put(body), digest("arguments", body)
    return Call(
        id=undo_id(key), by=UNDO, provider_id=undo_id(key), tool=spec.name, ordinal=0, raw=arguments,
        arguments=arguments, argument_digest=argument_digest,
        key=idempotency_key(view.manifest.line, f"undo:{key}:{spec.name}", argument_digest, 0),
    )  # fmt: skip


def denied(view: View, call: Call) -> str:
    """The sentence of the policy that forbids this undo; empty where none does (R-TOOL-17)."""
    if view.manifest.core_version < UNDO_SINCE:
        return ""
    ruled = ruling(view, call, view.pins.by_name[call.tool])
    return f"{ruled.findings[0].sentence} ({ruled.rule})"[:300] if ruled.decision == "deny" else ""


def asks(view: View, plan: Plan) -> bool:
    """Whether people decide on this undo: where the boundary asks; and in any case where the undo cannot be
    taken back itself, the tool always asks, its class was raised, whoever submitted has lost a right, or
    anything of the run is suspect."""
    spec = plan.spec
    if view.manifest.core_version >= UNDO_SINCE and _suspect(view, plan):
        return True
    if view.pins.boundary.compensation == "ask" or view.headroom.missing_scopes:
        return True
    final = spec.reversibility is Reversibility.IRREVERSIBLE or spec.approval == "always"
    return final or view.risk_of(spec) is not spec.risk


def _suspect(view: View, plan: Plan) -> bool:
    """Whether an undo may do what a stranger wants: a detector found something in this run, the policy gates
    the call, or a value of it comes out of something untrusted and does not stand in the goal."""
    unwinding = view.state.unwinding
    unsafe = unwinding is not None and unwinding.code is TerminalCode.UNSAFE_DETECTION
    if view.state.guarded or unsafe or ruling(view, plan.call, plan.spec).decision != "allow":
        return True
    traced = Tracer(view, plan.call).trace(view.desk.json(plan.call.arguments or ""))
    return any(one.source.origin == "untrusted_observation" and not one.said for one in traced.values())


def sentence(template: str, arguments: Mapping[str, object]) -> str:
    """The wanted end with the arguments put in."""
    text = template
    for name, value in arguments.items():
        text = text.replace("{" + name + "}", str(value)[:200])
    return text[:500]
