"""Reads of a tenant's policy: what holds now, what held before, what waits for a second person. Inside the
tenant's context.
"""

from dataclasses import dataclass
from functools import lru_cache

from orchestrator.core.policy import SHIPPED, Policy, Weaker, loosenings
from orchestrator.models import PolicyProposal, PolicyVersion

KEPT = 64
SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNow:
    """The policy in force; `row` is None while it is what ships."""

    policy: Policy
    row: PolicyVersion | None

    @property
    def version(self) -> int:
        """Its number; 0 is what ships."""
        return self.policy.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A weaker policy that waits for a second person, with where it is weaker."""

    row: PolicyProposal
    policy: Policy
    weaker: tuple[Weaker, ...]
    additions: bool


def policy_now() -> PolicyNow:
    """What new runs are pinned to."""
    row = PolicyVersion.objects.order_by("-version").first()
    return PolicyNow(policy=SHIPPED if row is None else policy_in(bytes(row.body)), row=row)


def policy_versions() -> list[tuple[PolicyVersion, Policy]]:
    """The versions, newest first, as far as a page shows them."""
    rows = PolicyVersion.objects.order_by("-version")[:SHOWN]
    return [(row, policy_in(bytes(row.body))) for row in rows]


def policy_of(digest: str) -> Policy | None:
    """The version of a digest; None for one that is not this tenant's."""
    body = PolicyVersion.objects.filter(digest=digest).values_list("body", flat=True).first()
    return None if body is None else policy_in(bytes(body))


def proposed() -> Proposed | None:
    """What waits for a second person."""
    row = PolicyProposal.objects.filter(status="open").first()
    return None if row is None else shown_proposal(row, policy_now().policy)


def shown_proposal(row: PolicyProposal, before: Policy) -> Proposed:
    """A proposal beside the policy it would follow."""
    policy = policy_in(bytes(row.body))
    weaker = loosenings(before, policy)
    return Proposed(
        row=row, policy=policy, weaker=weaker, additions=policy.after_untrusted != before.after_untrusted
    )


@lru_cache(KEPT)
def policy_in(body: bytes) -> Policy:
    """The policy of its canonical form."""
    return Policy.model_validate_json(body)
