"""Plan how one side effect is undone: by which tool, with which arguments, or why not (R-TOOL-15).

Planning has no effects of its own.
"""

from collections.abc import Mapping
from typing import NamedTuple

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.domain.effects import idempotency_key
from orchestrator.core.domain.run_state import Call, SideEffect
from orchestrator.core.domain.tool_spec import Compensation, Reversibility, ToolSpec
from orchestrator.core.guardrails.policy_evaluation import evaluate_policy
from orchestrator.core.guardrails.taint_sources import UNDO
from orchestrator.core.guardrails.taint_tracking import TaintTracker
from orchestrator.core.workflow.goal_inputs import MISSING, resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext
from traces.core.canonical import canonical_outside, compute_digest

# Reasons why a side effect is left in place. Operators are notified of every reason that is not in
# BY_CHOICE.
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
    """The compensating call of one side effect."""

    spec: ToolSpec
    call: Call
    wanted: str


def undo_id(key: str) -> str:
    """Return the id of the call that undoes the call `key`."""
    return f"u{key[1:]}"


def plan_compensation(view: NodeContext, key: str, deed: SideEffect) -> Plan | str:
    """Return the compensating call, or the reason why there is none.

    Raises: ContentMissing for content that was not fetched.
    """
    if deed.standing in (IN_DOUBT, OPEN):
        return deed.standing
    done = view.pins.by_name[deed.tool]
    if done.compensation is None:
        return IRREVERSIBLE if done.reversibility is Reversibility.IRREVERSIBLE else NO_WAY
    spec = view.pins.by_name.get(done.compensation.tool)
    if spec is None or not _is_within_boundary(view, spec):
        return NOT_PERMITTED
    if spec.name in view.headroom.stopped_tools or spec.name in view.state.stopped_tools:
        return TOOL_STOPPED
    body = _build_compensation_arguments(view, deed, done.compensation, spec)
    if body is None:
        return UNKNOWN_ARGUMENTS
    return Plan(spec, _build_compensation_call(view, key, spec, body), done.compensation.wanted)


def _is_within_boundary(view: NodeContext, spec: ToolSpec) -> bool:
    boundary = view.pins.boundary
    grant = boundary.grant_for(spec.name)
    ceiling = 0 if grant is None else min(grant.risk_ceiling.rank, boundary.risk_ceiling.rank)
    return grant is not None and view.risk_of(spec).rank <= ceiling


def _build_compensation_arguments(
    view: NodeContext, deed: SideEffect, way: Compensation, spec: ToolSpec
) -> bytes | None:
    """Return the arguments as bytes; None if one cannot be found or they do not fit the tool."""
    wanted = [deed.arguments] + ([deed.observation] if deed.observation is not None else [])
    view.desk.require(wanted)
    document = {"arguments": view.desk.json(deed.arguments), "result": _read_original_result(view, deed)}
    found = {name: resolve_pointer(document, pointer) for name, pointer in way.arguments.items()}
    if any(value is MISSING for value in found.values()):
        return None
    value = {**way.constants, **found}
    return canonical_outside(value) if validate_against_schema(spec.input_schema, value) is None else None


def _read_original_result(view: NodeContext, deed: SideEffect) -> object:
    try:
        return None if deed.observation is None else view.desk.json(deed.observation)
    except ValueError:
        # The result was stored as it came and is no JSON document, so nothing in it can be found.
        return None


def _build_compensation_call(view: NodeContext, key: str, spec: ToolSpec, body: bytes) -> Call:
    """Build the compensating call.

    Its idempotency key depends on the side effect alone, however often the call is tried (R-TOOL-9).
    """
    arguments, argument_digest = view.desk.put(body), compute_digest("arguments", body)
    return Call(
        id=undo_id(key), by=UNDO, provider_id=undo_id(key), tool=spec.name, raw=arguments,
        arguments=arguments, argument_digest=argument_digest,
        key=idempotency_key(view.manifest.line, f"undo:{key}:{spec.name}", argument_digest, 0),
    )  # fmt: skip


def explain_policy_denial(view: NodeContext, call: Call) -> str:
    """Return the sentence of the policy that forbids this undo; empty if none does (R-TOOL-17)."""
    ruled = evaluate_policy(view, call, view.pins.by_name[call.tool])
    return f"{ruled.findings[0].sentence} ({ruled.rule})"[:300] if ruled.decision == "deny" else ""


def needs_compensation_approval(view: NodeContext, plan: Plan) -> bool:
    """Return whether people decide on this undo.

    They do if the boundary asks for it. They always do if the undo is itself irreversible, if its tool
    always needs approval, if the tool's risk class was raised, if the submitter has lost a scope, or if the
    run is suspect.
    """
    spec = plan.spec
    if _is_compensation_suspect(view, plan):
        return True
    if view.pins.boundary.compensation == "ask" or view.headroom.missing_scopes:
        return True
    final = spec.reversibility is Reversibility.IRREVERSIBLE or spec.approval == "always"
    return final or view.risk_of(spec) is not spec.risk


def _is_compensation_suspect(view: NodeContext, plan: Plan) -> bool:
    """Return whether untrusted content may have influenced an undo.

    That is so if a detector found something in this run, if the policy does not simply allow the call, or
    if one of its values comes from an untrusted source and is not stated in the goal.
    """
    unwinding = view.state.unwinding
    unsafe = unwinding is not None and unwinding.code is TerminalCode.UNSAFE_DETECTION
    if view.state.guarded or unsafe or evaluate_policy(view, plan.call, plan.spec).decision != "allow":
        return True
    traced = TaintTracker(view, plan.call).trace(view.desk.json(plan.call.arguments or ""))
    return any(one.source.origin == "untrusted_observation" and not one.said for one in traced.values())


def fill_outcome_template(template: str, arguments: Mapping[str, object]) -> str:
    """Return the expected outcome with the arguments filled in."""
    text = template
    for name, value in arguments.items():
        text = text.replace("{" + name + "}", str(value)[:200])
    return text[:500]
