"""Reads of a tenant's policy: in force, earlier versions, and proposals that wait for a second person.

Call them inside the tenant's context.
"""

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import orjson

from orchestrator.core.policy.rules import SHIPPED, Policy, WeakerCase, find_weaker_cases
from orchestrator.core.policy.task_scope import ScopeGrant, TaskScope
from orchestrator.policies.models import PolicyProposal, PolicyVersion
from orchestrator.policies.queries.boundaries import newest_boundary
from orchestrator.publishing.models import PinSet
from orchestrator.runs.models.run import ManifestRow

KEPT = 64
SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNow:
    """The policy in force; `row` is None while it is the default policy."""

    policy: Policy
    row: PolicyVersion | None

    @property
    def version(self) -> int:
        """The version number; 0 is the default policy."""
        return self.policy.version


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeHeld:
    """The scope of a run: the scope of its task, the grant of its boundary, and the policy.

    `left_out` and `cautions` are tools that the run lacks, or may lose before its end, with the reason.
    """

    scope: TaskScope
    granted: ScopeGrant
    policy: Policy
    left_out: dict[str, str]
    cautions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedPolicy:
    """A weaker policy that waits for a second person, with the cases in which it is weaker."""

    row: PolicyProposal
    policy: Policy
    weaker: tuple[WeakerCase, ...]
    additions: bool


def policy_now() -> PolicyNow:
    """Return the policy that new runs are pinned to."""
    row = PolicyVersion.objects.order_by("-version").first()
    return PolicyNow(policy=SHIPPED if row is None else policy_in(bytes(row.body)), row=row)


def policy_versions() -> list[tuple[PolicyVersion, Policy]]:
    """Return the versions, newest first, as many as a page shows."""
    rows = PolicyVersion.objects.order_by("-version")[:SHOWN]
    return [(row, policy_in(bytes(row.body))) for row in rows]


def policy_of(digest: str) -> Policy | None:
    """Return the version with a digest; None where it is not this tenant's."""
    body = PolicyVersion.objects.filter(digest=digest).values_list("body", flat=True).first()
    return None if body is None else policy_in(bytes(body))


def scope_held(run_id: UUID) -> ScopeHeld:
    """Return the scope and policy that a run is pinned to."""
    body, pins_digest = ManifestRow.objects.values_list("body", "pins_digest").get(id=run_id)
    pins = orjson.loads(bytes(PinSet.objects.values_list("body", flat=True).get(digest=pins_digest)))
    return ScopeHeld(
        scope=TaskScope.model_validate(orjson.loads(bytes(body))["scope"]),
        granted=ScopeGrant.model_validate(pins["boundary"].get("scope") or {}),
        policy=Policy.model_validate(pins["policy"]),
        left_out=pins.get("left_out", {}),
        cautions=pins.get("cautions", {}),
    )


def granted_by(boundary: str) -> ScopeGrant:
    """Return the grant that the boundary's version in force adds to the scope of its tasks."""
    row = newest_boundary(boundary)
    found = None if row is None else orjson.loads(bytes(row.body)).get("scope")
    return ScopeGrant.model_validate(found or {})


def find_open_proposal() -> ProposedPolicy | None:
    """Return the policy proposal that waits for a second person; None without one."""
    row = PolicyProposal.objects.filter(status="open").first()
    return None if row is None else shown_proposal(row, policy_now().policy)


def shown_proposal(row: PolicyProposal, before: Policy) -> ProposedPolicy:
    """Return a proposal compared with the policy that it would replace."""
    policy = policy_in(bytes(row.body))
    weaker = find_weaker_cases(before, policy)
    return ProposedPolicy(
        row=row, policy=policy, weaker=weaker, additions=policy.after_untrusted != before.after_untrusted
    )


@lru_cache(KEPT)
def policy_in(body: bytes) -> Policy:
    """Parse a policy from its canonical form."""
    return Policy.model_validate_json(body)
