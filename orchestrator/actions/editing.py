"""Edited arguments are judged like any others: parsed, validated, normalised, their approvers counted anew
(R-APPR-3)."""

from typing import Any
from uuid import UUID

import orjson

from approvals.models import Request
from approvals.ports import Judged
from orchestrator.core.approvers import amount_of, approvers
from orchestrator.core.exact import exact_action
from orchestrator.core.manifest import Pins
from orchestrator.core.parsing import Arguments, Malformed, fits, parse, unsendable
from orchestrator.core.reaching import risk_of_edit
from orchestrator.core.tool import ToolSpec
from orchestrator.models import ManifestRow, PinSet
from traces.core.canonical import canonical_outside, digest


def judge_edit(tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any) -> Judged:
    """The judgement of edited arguments, for approvals' port. Inside the tenant's context.

    Permission and budget are judged again by the run itself when it goes on: the grant alone lets nothing
    through.
    """
    request = Request.objects.get(run_id=run_id, call_id=call_id, status="pending")
    pins_digest = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run_id)
    pins = Pins.model_validate_json(
        bytes(PinSet.objects.values_list("body", flat=True).get(digest=pins_digest))
    )
    spec = pins.by_name[request.tool]
    parsed = parse(canonical_outside(arguments))
    fault = parsed if isinstance(parsed, Malformed) else _fault(spec, parsed)
    if isinstance(fault, Malformed) or isinstance(parsed, Malformed):
        return Judged(None, refusal=fault.detail if fault is not None else "")
    packet = orjson.loads(bytes(request.packet))
    action = exact_action(
        run=str(run_id),
        call=call_id,
        step=packet["step"],
        tool=spec.name,
        tool_digest=pins.tool_digests[spec.name],
        arguments=digest("arguments", parsed.body),
        boundary=pins.boundary_digest,
    )
    amount = amount_of(spec, parsed.value)
    return Judged(
        parsed.body, quorum=approvers(spec, amount, parsed.value), action_digest=action, amount=amount,
        risk=risk_of_edit(spec, parsed.value).value,
    )  # fmt: skip


def _fault(spec: ToolSpec, parsed: Arguments) -> Malformed | None:
    return unsendable(parsed.value) or fits(spec.input_schema, parsed.value)
