"""Edited arguments are judged like any others: parsed, validated, normalised, their approvers counted anew
(R-APPR-3)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson

from approvals.models import Request
from approvals.ports import EditJudgement
from orchestrator.core.calls.action_digest import exact_action
from orchestrator.core.calls.effective_risk import risk_of_edit
from orchestrator.core.calls.sealed_arguments import validate_sealed_references
from orchestrator.core.common.argument_parsing import (
    Arguments,
    MalformedArguments,
    parse_arguments,
    validate_against_schema,
    validate_no_redactions,
)
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.approval_thresholds import amount_of, count_required_approvers
from orchestrator.publishing.models import PinSet
from orchestrator.runs.models.run import ManifestRow
from traces.core.canonical import canonical_outside, compute_digest
from traces.core.redaction import may_hold_secret
from traces.core.sealed_references import Place, extract_references, holds_reference, with_known, with_sealed
from traces.queries import load_payloads, vault_of


def judge_edit(tenant_id: UUID, run_id: UUID, call_id: str, arguments: Any) -> EditJudgement:
    """The judgement of edited arguments, for approvals' port. Inside the tenant's context; writes nothing.

    What is sensitive in them is sealed before anything of them is kept. Permission and budget are judged
    again by the run itself when it goes on: the grant alone lets nothing through.
    """
    request = Request.objects.get(run_id=run_id, call_id=call_id, status="pending")
    pins_digest = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run_id)
    pins = Pins.model_validate_json(
        bytes(PinSet.objects.values_list("body", flat=True).get(digest=pins_digest))
    )
    spec = pins.by_name[request.tool]
    parsed = parse_arguments(canonical_outside(arguments))
    packet = orjson.loads(bytes(request.packet))
    fault = (
        parsed
        if isinstance(parsed, MalformedArguments)
        else _find_argument_error(run_id, spec, parsed, packet["step"])
    )
    if isinstance(fault, MalformedArguments) or isinstance(parsed, MalformedArguments):
        return EditJudgement(None, refusal=fault.detail if fault is not None else "")
    body, sealed = _seal_arguments(tenant_id, run_id, spec.name, parsed)
    action = exact_action(
        run=str(run_id),
        call=call_id,
        step=packet["step"],
        tool=spec.name,
        tool_digest=pins.tool_digests[spec.name],
        arguments=compute_digest("arguments", body),
        boundary=pins.boundary_digest,
    )
    amount = amount_of(spec, parsed.value)
    return EditJudgement(
        body,
        quorum=count_required_approvers(spec, amount, parsed.value),
        action_digest=action,
        amount=amount,
        risk=risk_of_edit(spec, parsed.value).value,
        holds_sealed=holds_reference(body.decode()),
        sealed=sealed,
    )


def _find_argument_error(
    run_id: UUID, spec: ToolSpec, parsed: Arguments, by: str
) -> MalformedArguments | None:
    held = load_payloads(run_id, {found.digest for found in extract_references(parsed.value)})
    return (
        validate_no_redactions(parsed.value)
        or validate_sealed_references(held.get, tool=spec.name, by=by, value=parsed.value)
        or validate_against_schema(spec.input_schema, parsed.value)
    )


def _seal_arguments(
    tenant_id: UUID, run_id: UUID, tool: str, parsed: Arguments
) -> tuple[bytes, Mapping[str, bytes]]:
    """The arguments as they are kept, shown and granted, and the payloads of what was sealed in them."""
    vault = vault_of(tenant_id, run_id)
    if vault is None or not (vault.known or may_hold_secret(parsed.body)):
        return parsed.body, {}

    def seal(kind: str, secret: str, member: str) -> str:
        return vault.seal(kind, secret, Place(source="call", tool=tool, member=member))

    value = with_known(with_sealed(parsed.value, seal), dict(vault.known), seal)
    body = canonical_outside(value)
    return body, vault.bodies
