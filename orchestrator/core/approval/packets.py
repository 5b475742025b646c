"""Packets: what a reviewer sees, frozen and hashed when the request is made (R-APPR-2)."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from approvals.core.packet import (
    ArgumentOrigin,
    BudgetLine,
    BudgetPacket,
    Costs,
    Evidence,
    Kind,
    OriginPacket,
    Packet,
    ToolShown,
    WhoMayDecide,
    packet_bytes,
)
from orchestrator.core.accounting.effect_cost import ZERO, call_reserve
from orchestrator.core.approval.change_requests import previous_arguments, proposal_of
from orchestrator.core.calls.effective_risk import gates_call, risk_of_call
from orchestrator.core.calls.open_effects import open_of
from orchestrator.core.domain.run_state import Call
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.guardrails.policy_evaluation import evaluate_policy
from orchestrator.core.guardrails.taint_tracking import TaintTracker
from orchestrator.core.tools.approval_thresholds import amount_of, count_required_approvers
from orchestrator.core.workflow.node_protocol import NodeContext

SHOWN = 4_000
SHOWN_FACTS = 20


def approvers_for(view: NodeContext, call: Call, spec: ToolSpec) -> tuple[Decimal | None, int]:
    """Return the amount at stake and how many distinct people must approve."""
    arguments = view.desk.json(call.arguments or "")
    amount = amount_of(spec, arguments)
    return amount, count_required_approvers(spec, amount, arguments)


def action_packet(
    view: NodeContext,
    call: Call,
    spec: ToolSpec,
    *,
    request: UUID,
    action: str,
    queue: str,
    quorum: int,
    expires_at: datetime,
    proposals: int = 0,
) -> bytes:
    """Build the packet of a call that needs a person's approval.

    A value that no trusted source gave and that the task does not name is stated first (R-TOOL-17).
    `proposals` is how many proposals its step may make before a call can only be allowed or refused (0: the
    call is never sent back).
    """
    ruled = evaluate_policy(view, call, spec)
    by_risk = gates_call(view, spec, call)
    packet = _build_packet(
        view,
        call,
        spec,
        request=request,
        kind="action",
        action=action,
        queue=queue,
        quorum=quorum,
        expires_at=expires_at,
        why=_explain_call(view, call),
        trigger=f"risk:{risk_of_call(view, spec, call).value}" if by_risk else ruled.rule,
        recommended="Approve only if every argument is what the goal needs.",
    )
    proposal = proposal_of(view, call, proposals) if proposals else None
    if proposal is not None:
        former = previous_arguments(view, call)
        packet = packet.model_copy(update={"proposal": proposal, "previous_arguments": former})
    if not ruled.findings:
        return packet_bytes(packet)
    stated = tuple(finding.sentence for finding in ruled.findings if not finding.ordinary)[:SHOWN_FACTS]
    ordinary = tuple(finding.sentence for finding in ruled.findings if finding.ordinary)[:SHOWN_FACTS]
    parts = {name: getattr(packet, name) for name in Packet.model_fields}
    return packet_bytes(OriginPacket(**parts, stated_first=stated, policy=ruled.rule, ordinary=ordinary))


# Error names for calls that brought no answer.
SILENT = ("timeout", "in_doubt", "unreachable", "malformed")


def reconciliation_packet(
    view: NodeContext,
    call: Call,
    spec: ToolSpec,
    *,
    request: UUID,
    effect: str,
    queue: str,
    expires_at: datetime,
) -> bytes:
    """Build the packet of a call that may or may not have happened (R-TOOL-9)."""
    packet = _build_packet(
        view,
        call,
        spec,
        request=request,
        kind="reconciliation",
        action="",
        queue=queue,
        quorum=1,
        expires_at=expires_at,
        trigger=f"in_doubt:{effect}",
        why=_in_doubt(view, call),
        recommended="Look at the other system: did it happen, or not?",
    )
    return packet_bytes(packet)


def _in_doubt(view: NodeContext, call: Call) -> str:
    """Explain why the outcome is unknown: no answer, an error, or an unreadable answer."""
    came, unread, before = "no answer came", call.unread, open_of(view.state, call)
    if before is not None and before.error not in SILENT:
        came = f"came to an error ({before.error}), which does not say that nothing was done"
    if unread is not None:
        status = f" with status {unread.status}" if unread.status else ""
        came = (
            f"it answered{status}, {unread.size} bytes that cannot be read ({unread.fault}; "
            f"SHA-256 {unread.whole})"
        )
    return f"The call was sent under key {call.key} and {came}. It will not be repeated by itself."


def question_packet(
    view: NodeContext, *, text: str, candidates: tuple[str, ...], request: UUID, expires_at: datetime
) -> bytes:
    """Build the packet of a question to the submitter."""
    packet = Packet(
        request=str(request),
        run=str(view.manifest.run),
        kind="clarification",
        goal=_format_goal(view),
        step=view.node.id,
        why=text,
        candidates=candidates,
        trigger=f"missing:{','.join(view.state.asked)}",
        costs=_build_costs(view, ZERO),
        boundary=view.pins.boundary_digest,
        expires_at=expires_at,
        recommended_action="Answer, or cancel the run.",
        who=WhoMayDecide(roles=("submitter",), queue="submitter", quorum=1),
    )
    return packet_bytes(packet)


def budget_packet(
    view: NodeContext,
    lines: tuple[BudgetLine, ...],
    *,
    refused: str,
    why: str,
    request: UUID,
    queue: str,
    expires_at: datetime,
) -> bytes:
    """Build the packet of a run that asks for more budget (R-BUDGET-7)."""
    packet = BudgetPacket(
        request=str(request),
        run=str(view.manifest.run),
        kind="budget",
        goal=_format_goal(view),
        step=view.node.id,
        why=why,
        evidence=_build_evidence(view),
        costs=_build_costs(view, ZERO),
        recommended_action="Give more only if what was reached so far is worth it; else say no.",
        trigger=f"budget:{refused}",
        boundary=view.pins.boundary_digest,
        expires_at=expires_at,
        who=WhoMayDecide(roles=("reviewer", "admin"), queue=queue, quorum=1),
        budget=lines,
        refused=refused,
    )
    return packet_bytes(packet)


def _build_packet(
    view: NodeContext,
    call: Call,
    spec: ToolSpec,
    *,
    request: UUID,
    kind: Kind,
    action: str,
    queue: str,
    quorum: int,
    expires_at: datetime,
    why: str,
    trigger: str,
    recommended: str,
) -> Packet:
    value = view.desk.json(call.arguments or "")
    cost = call_reserve(spec, granted=True, step=False).get("cost_usd", ZERO)
    return Packet(
        request=str(request),
        run=str(view.manifest.run),
        kind=kind,
        goal=_format_goal(view),
        step=call.by,
        call=call.id,
        tool=_build_tool_summary(view, call, spec, value),
        arguments=view.desk.read(call.arguments or "").decode(),
        arguments_digest=call.argument_digest or "",
        provenance=_build_argument_origins(view, call, value),
        why=why,
        evidence=_build_evidence(view),
        costs=_build_costs(view, cost),
        recommended_action=recommended,
        trigger=trigger,
        boundary=view.pins.boundary_digest,
        action_digest=action,
        expires_at=expires_at,
        who=WhoMayDecide(roles=("reviewer", "admin"), queue=queue, quorum=quorum),
    )


def _format_goal(view: NodeContext) -> str:
    return view.manifest.goal.objective[:SHOWN]


def _explain_call(view: NodeContext, call: Call) -> str:
    if call.by == "undo":
        return _why_undo(view)
    found = f" Safety detectors found: {', '.join(view.state.alarms)}." if view.state.alarms else ""
    if call.by != "model":
        return f"The workflow's step {call.by} asks for this call.{found}"
    return f"The model asked for this call; its reasons are not evidence.{found}"


def _why_undo(view: NodeContext) -> str:
    """Explain, from the recorded effect alone, why a side effect is undone; no text of a model is used."""
    unwinding = view.state.unwinding
    assert unwinding is not None
    deed = view.state.deeds[unwinding.call]
    return (
        f"The run ends without its result ({unwinding.code.value}). This takes back what {deed.tool} did; "
        "a no leaves it as it is."
    )


def _build_tool_summary(view: NodeContext, call: Call, spec: ToolSpec, arguments: Any) -> ToolShown:
    return ToolShown(
        name=spec.name,
        version=spec.version,
        digest=view.pins.tool_digests[spec.name],
        description=spec.description,
        risk=risk_of_call(view, spec, call).value,
        reversibility=spec.reversibility.value,
        effect=_fill_template(spec.effect_sentence or spec.side_effects, arguments),
        blast_radius=_fill_template(spec.blast_radius, arguments),
        rollback=_describe_rollback(spec),
    )


def _describe_rollback(spec: ToolSpec) -> str:
    if spec.compensation is None:
        return "There is no way back by itself."
    return f"{spec.compensation.tool} takes it back: {spec.compensation.wanted}"


def _fill_template(template: str, arguments: Any) -> str:
    """Fill in a template's {argument} places from the bytes that would be sent.

    Text of a model is never used.
    """
    text = template
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        text = text.replace("{" + name + "}", str(value)[:200])
    return text


def _build_argument_origins(view: NodeContext, call: Call, value: Any) -> tuple[ArgumentOrigin, ...]:
    traced = TaintTracker(view, call).trace(value)
    return tuple(
        ArgumentOrigin(pointer=pointer, origin=one.source.origin, reference=one.source.reference)
        for pointer, one in traced.items()
    )


def _build_evidence(view: NodeContext) -> tuple[Evidence, ...]:
    facts = view.state.facts_in_order()[-SHOWN_FACTS:]
    return tuple(
        Evidence(
            fact=name,
            digest=fact.digest,
            source=fact.tool,
            trust=fact.trust,
            value=view.desk.text(fact.digest, SHOWN),
        )
        for name, fact in facts
    )


def _build_costs(view: NodeContext, this: Decimal) -> Costs:
    return Costs(so_far=view.state.usage.get("cost_usd", ZERO), this=this, left=view.state.left("cost_usd"))
