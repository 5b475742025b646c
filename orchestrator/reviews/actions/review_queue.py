"""The review queue: what a run asks people to look at, and what they say (R-TOOL-19)."""

from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from approvals.core.errors import NotYours
from orchestrator.core.approval.errors import ReviewRefused
from orchestrator.core.approval.review_item import (
    LONGEST_NOTE,
    MOST_EVIDENCE,
    Finding,
    Kind,
    Severity,
    explain_review_refusal,
)
from orchestrator.knowledge.queries.memory import facts_of_run
from orchestrator.reviews.models import ReviewItem, ReviewWord
from orchestrator.reviews.queries.review_holders import may_release
from orchestrator.reviews.queries.reviews import ReviewState, item_of, refused_to
from tenancy.actions import write_audit_entry
from tenancy.core.errors import NotFound
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from tenancy.people.queues import open_queues
from tenancy.queries import standing_of
from traces.core.canonical import encode_canonical


def request_review(
    tenant_id: UUID,
    run: UUID,
    *,
    key: str,
    queue: str,
    severity: Severity,
    subject: str,
    reason: str,
    facts: Sequence[str],
) -> ReviewItem:
    """Put something before people, once a key, with the committed facts of the run that it rests on. Joins
    the caller's transaction. Raises ReviewRefused for facts that the run has not committed, for a key under
    which something else was asked, and for a queue that is not open."""
    names = list(dict.fromkeys(facts))
    found = facts_of_run(run, names)
    if missing := [name for name in names if name not in found]:
        raise ReviewRefused(detail=f"the run committed no fact {missing[0]}")
    if len(names) > MOST_EVIDENCE:
        raise ReviewRefused(detail=f"it rests on at most {MOST_EVIDENCE} facts")
    if queue not in (known := open_queues()):
        raise ReviewRefused(
            detail=f"there is no open queue {queue}; there are {', '.join(sorted(known))}"[:500]
        )
    asked = {"queue": queue, "severity": severity, "subject": subject, "reason": reason}
    evidence = [found[name].model_dump() for name in names]
    whole = sha256(encode_canonical({**asked, "run": str(run), "facts": names})).hexdigest()
    row = ReviewItem(
        tenant_id=tenant_id, run_id=run, key=key, **asked, evidence=evidence, sha256=whole, at=database_now()
    )  # fmt: skip
    ReviewItem.objects.bulk_create([row], ignore_conflicts=True)
    kept = ReviewItem.objects.get(run_id=run, key=key)
    if kept.sha256 != whole:
        raise ReviewRefused(detail="something else was asked under its key")
    return kept


def take_review(tenant_id: UUID, item: UUID | None, *, by: UUID) -> ReviewState:
    """Make an item one's own. Outermost verb: owns the transaction. Raises as `answer_review`."""
    return _record_review_action(tenant_id, item, "taken", by)


def release_review(tenant_id: UUID, item: UUID | None, *, by: UUID) -> ReviewState:
    """Give an item back: one's own, or, for an administrator or where its holder may not review it any more,
    another's. Outermost verb: owns the transaction. Raises as `answer_review`."""
    return _record_review_action(tenant_id, item, "released", by)


def answer_review(
    tenant_id: UUID, item: UUID | None, *, by: UUID, finding: Finding, note: str
) -> ReviewState:
    """Answer an item, once. Outermost verb: owns the transaction. It allows no call.

    Raises NotFound, NotYours (403: one's own run, another's queue, no right to decide), ReviewRefused (409:
    answered already, or taken by somebody else; no note).
    """
    if not note.strip() or len(note) > LONGEST_NOTE or "\x00" in note:
        raise ReviewRefused(detail=f"say in 1 to {LONGEST_NOTE} characters what you found")
    return _record_review_action(tenant_id, item, "answered", by, finding=finding, note=note.strip())


def _record_review_action(
    tenant_id: UUID,
    item: UUID | None,
    kind: Kind,
    by: UUID,
    *,
    finding: Finding | None = None,
    note: str = "",
) -> ReviewState:
    with tenant_transaction(tenant_id):
        found = item_of(item)
        # Of two who take one item at the same moment, the second sees what the first has written.
        take_advisory_lock(f"review:{found.row.id}")
        found = item_of(item)
        who = standing_of(tenant_id, by)
        if who is None:
            raise NotFound
        frees = kind == "released" and may_release(tenant_id, found, who)
        if not frees and (refused := refused_to(found, who)) is not None:
            raise NotYours(reason=refused.sentence, rule=refused.rule.value)
        if why := explain_review_refusal(found.last, kind, str(by), may_release=frees):
            raise ReviewRefused(detail=why)
        ReviewWord.objects.create(
            tenant_id=tenant_id, item=found.row, kind=kind, finding=finding or "", note=note, by=by,
            number=ReviewWord.objects.filter(item=found.row).count(), at=database_now(),
        )  # fmt: skip
        write_audit_entry(
            tenant_id, by, verb=f"review.{kind}", object=f"review:{found.row.id}",
            before={"state": found.state, "holder": str(found.holder or "")},
            after={"finding": finding or "", "kind": kind}, reason=note,
        )  # fmt: skip
        return item_of(item)
