"""Saying which models a tenant's runs are played by: versions, each with its reason (R-TOOL-22)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from orchestrator.actions.outside import hold_outside, keep_outside, read_outside
from orchestrator.core.errors import EgressRefused
from orchestrator.core.own_models import OwnModel, OwnModels, faults_of, wider_models
from orchestrator.gateways.tools.egress import look_before_saving
from orchestrator.queries.outside import OutsideNow, own_models
from orchestrator.queries.servers import leave_for
from tenancy.context import tenant
from tenancy.core.errors import InvalidInput, SecretUnusable
from tenancy.second_person import ask_second
from tenancy.secrets import reveal, secrets_of

MODELS = "the models to ask"
"""What a proposal calls the list; no tool is called so."""


def set_models(
    tenant_id: UUID,
    given: tuple[Mapping[str, Any], ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """Make exactly these the tenant's own models: runs admitted from now on are pinned to them. Outermost
    verb: owns the transaction. `expected` is the version that was looked at, `agreed` who agreed to addresses
    and keys that were not there before. Raises InvalidInput naming each bad field, Stale,
    SecondPersonNeeded."""
    wanted = read_models(given)
    look_at_models(tenant_id, wanted)
    return set_looked_at(tenant_id, wanted, expected=expected, by=by, reason=reason, agreed=agreed)


def set_looked_at(
    tenant_id: UUID,
    wanted: OwnModels,
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """`set_models` of what was read and looked at before: it asks no network. Opens or joins the
    transaction."""
    with tenant(tenant_id):
        tag = hold_outside(tenant_id, "models", expected)
        more = wider_models(own_models(), wanted)
        ask_second(tenant_id, MODELS, more, by=by, agreed=agreed, reason=reason, tag=tag)
        return keep_outside(tenant_id, "models", wanted, by=by, reason=reason, agreed=agreed)


def read_models(given: tuple[Mapping[str, Any], ...]) -> OwnModels:
    """The list, each field and how they fit together. Raises InvalidInput."""
    wanted = read_outside(OwnModels, {"profiles": [dict(one) for one in given]})
    if found := list(faults_of(wanted)):
        raise _invalid(found)
    return wanted


def look_at_models(tenant_id: UUID, wanted: OwnModels) -> None:
    """Whether each address that is new or another may be reached, and its secret opens for it: what stands
    already must not keep anybody from taking it out. Asks the network for names that are not the provider's
    own; raises InvalidInput."""
    faults = []
    with tenant(tenant_id):
        standing = own_models()
    for number, one in enumerate(wanted.profiles):
        known = standing.named(one.name)
        if known is not None and (known.place, known.secret) == (one.place, one.secret):
            continue
        if fault := _address_fault(tenant_id, one):
            faults.append((f"/profiles/{number}/base_url", fault))
        elif one.secret and (fault := _secret_fault(tenant_id, one)):
            faults.append((f"/profiles/{number}/secret", fault))
    if faults:
        raise _invalid(faults)


def _address_fault(tenant_id: UUID, one: OwnModel) -> str:
    """Why the address may not be asked; empty where it may."""
    try:
        target = one.target
        if not one.base_url:
            return ""
        here = target.literal
        if one.secret and target.scheme == "http" and not (here is not None and here.is_loopback):
            return "A key is not sent in the clear."
        with tenant(tenant_id):
            leave = leave_for(target.origin)
        look_before_saving(one.base_url, leave)
    except EgressRefused as refused:
        return str(refused.data["detail"])
    return ""


def _secret_fault(tenant_id: UUID, one: OwnModel) -> str:
    """Why the secret would not open for the address; empty where it would. Its value goes nowhere."""
    try:
        reveal(tenant_id, one.secret, one.origin)
    except SecretUnusable as refused:
        return f"{one.secret}: {refused.data['detail']}."
    if any(kept.name == one.secret and kept.renews_at for kept in secrets_of(tenant_id)):
        return f"{one.secret} is renewed by a token endpoint, which is done for tools alone."
    return ""


def _invalid(found: list[tuple[str, str]]) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": p, "code": "invalid", "detail": d} for p, d in found])
