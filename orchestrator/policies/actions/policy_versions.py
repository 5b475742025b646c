"""Change a tenant's policy: a stricter one applies at once, a weaker one needs a second person.

Spec: R-TOOL-17.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from orchestrator.core.approval.errors import ProposalOpen
from orchestrator.core.policy.rules import Policy, is_weaker_policy
from orchestrator.policies.actions.dual_control import ChangeAuthor as ChangeAuthor
from orchestrator.policies.actions.dual_control import close_proposal, dropped_as, not_own
from orchestrator.policies.models import PolicyProposal, PolicyVersion
from orchestrator.policies.queries.policies import PolicyNow, policy_in, policy_now
from orchestrator.runs.models.emergency_stop import EmergencyStop
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from tenancy.people.dual_control import check_reason
from traces.core.canonical import canonical_model

OBJECT = "policy:origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """The result of a change: the policy in force, and the proposal if a second person is needed."""

    now: PolicyNow
    proposal: PolicyProposal | None = None


# A value_error comes from a validator of the policy: two rules share a name, or a detector is unknown.
CODES = {"extra_forbidden": "unknown", "value_error": "not-allowed"}


def asked_policy(given: dict[str, Any]) -> Policy:
    """Parse the policy in a body or a form. Its version is not the caller's to choose.

    Raises: InvalidInput naming each wrong or unknown field.
    """
    try:
        return Policy.model_validate({**given, "version": 0})
    except ValidationError as error:
        raise InvalidInput(
            errors=[
                {
                    "pointer": "/" + "/".join(str(part) for part in found["loc"]),
                    "code": CODES.get(found["type"], "invalid"),
                    "detail": found["msg"],
                }
                for found in error.errors(include_url=False, include_input=False, include_context=False)[:50]
            ]
        ) from None


def change_policy(
    tenant_id: UUID, policy: Policy, *, expected: int | None, who: ChangeAuthor, reason: str
) -> PolicyChange:
    """Set the tenant's policy. Outermost verb: owns the transaction.

    A policy that is nowhere weaker applies at once, to running runs from their next call on. Any other
    becomes a proposal. `expected` is the version that the caller looked at. An unchanged policy changes
    nothing.

    Raises: Stale, InvalidInput, ProposalOpen.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        before = _lock_current_policy(tenant_id)
        if expected is not None and expected != before.version:
            raise Stale
        after = policy.evolve(version=before.version + 1)
        if after == before.policy.evolve(version=after.version):
            return PolicyChange(now=before)
        if is_weaker_policy(before.policy, after):
            return PolicyChange(
                now=before, proposal=_create_policy_proposal(tenant_id, before, after, who, reason)
            )
        _publish_policy_version(tenant_id, before, after, who=who, agreed=None, reason=reason)
        return PolicyChange(now=policy_now())


def agree_to_policy(tenant_id: UUID, proposal_id: UUID, *, who: ChangeAuthor, reason: str) -> PolicyChange:
    """Approve a weaker policy as the second person: it applies to new runs. Outermost verb: owns the
    transaction.

    Raises: NotFound, OwnProposal, and Stale if the policy has changed since it was proposed.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        before = _lock_current_policy(tenant_id)
        row = _get_open_proposal(proposal_id)
        not_own(row, who)
        if row.before != before.version:
            raise Stale
        close_proposal(row, "agreed", who, reason)
        proposer = ChangeAuthor(principal=row.by, owner=row.owner)
        _publish_policy_version(
            tenant_id, before, policy_in(bytes(row.body)), who=proposer, agreed=who, reason=row.reason
        )  # fmt: skip
        return PolicyChange(now=policy_now())


def drop_proposal(tenant_id: UUID, proposal_id: UUID, *, who: ChangeAuthor, reason: str) -> None:
    """Refuse a proposal, or withdraw one's own. Outermost verb: owns the transaction.

    Raises: NotFound.
    """
    check_reason(reason)
    with tenant_transaction(tenant_id):
        _lock_current_policy(tenant_id)
        row = _get_open_proposal(proposal_id)
        became = dropped_as(row, who)
        close_proposal(row, became, who, reason)
        verb = "policy.withdraw" if became == "withdrawn" else "policy.refuse"
        write_audit_entry(
            tenant_id, who.principal, verb=verb, object=OBJECT, before={"proposal": str(row.id)}, after={},
            reason=reason,
        )  # fmt: skip


def _lock_current_policy(tenant_id: UUID) -> PolicyNow:
    """Return the current policy, locked against other changes until the transaction ends."""
    take_advisory_lock(f"policy:{tenant_id}")
    return policy_now()


def _get_open_proposal(proposal_id: UUID) -> PolicyProposal:
    row = PolicyProposal.objects.filter(id=proposal_id, status="open").first()
    if row is None:
        raise NotFound
    return row


def _create_policy_proposal(
    tenant_id: UUID, before: PolicyNow, after: Policy, who: ChangeAuthor, reason: str
) -> PolicyProposal:
    waiting = PolicyProposal.objects.filter(status="open").first()
    if waiting is not None:
        raise ProposalOpen
    row = PolicyProposal.objects.create(
        tenant_id=tenant_id, before=before.version, digest=after.digest, body=canonical_model(after),
        reason=reason[:500], by=who.principal, owner=who.owner, at=database_now(),
    )  # fmt: skip
    write_audit_entry(
        tenant_id,
        who.principal,
        verb="policy.propose",
        object=OBJECT,
        before=_serialize_policy(before.policy),
        after=_serialize_policy(after),
        reason=reason,
    )
    return row


def _publish_policy_version(
    tenant_id: UUID,
    before: PolicyNow,
    after: Policy,
    *,
    who: ChangeAuthor,
    agreed: ChangeAuthor | None,
    reason: str,
) -> None:
    """Publish a new version and notify the runs under way.

    Proposals on the former version become outdated.
    """
    at = database_now()
    PolicyVersion.objects.create(
        tenant_id=tenant_id, version=after.version, digest=after.digest, body=canonical_model(after),
        loosens=agreed is not None, reason=reason[:500], by=who.principal, owner=who.owner,
        agreed_by=agreed.principal if agreed else None, agreed_owner=agreed.owner if agreed else None, at=at,
    )  # fmt: skip
    PolicyProposal.objects.filter(status="open").update(status="outdated", settled_at=at)
    standing = EmergencyStop.objects.filter(tenant_id=tenant_id, scope="policy", lifted_at=None)
    standing.update(lifted_at=at, lifted_by=who.principal)
    EmergencyStop.objects.create(
        scope="policy", tenant_id=tenant_id, target=after.digest, reason=reason[:500], by=who.principal, at=at
    )
    actor = who if agreed is None else agreed
    write_audit_entry(
        tenant_id,
        actor.principal,
        verb="policy.change",
        object=OBJECT,
        before=_serialize_policy(before.policy),
        after={**_serialize_policy(after), "proposed_by": str(who.principal)},
        reason=reason,
    )


def _serialize_policy(policy: Policy) -> dict[str, Any]:
    return policy.model_dump(mode="json")
