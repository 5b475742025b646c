"""Open a walk's requests to people in the same commit (docs/ring.md, step 5)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from approvals.actions import open_request, withdraw_one
from approvals.actions.new_request import NewRequest
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.domain.effects import AskApproval, AskPerson
from orchestrator.notifications.actions.run_notifications import tell_asked
from orchestrator.runs.queries.retry_lineage import retriers_of
from traces.core.events.trace_events import ApprovalWithdrawn, TraceEventBody
from traces.core.sealed_references import holds_reference


def open_requests(
    hand: ClaimedRun,
    asked: Sequence[AskApproval | AskPerson],
    bodies: Mapping[str, bytes],
    at: datetime,
) -> dict[str, str]:
    """Open every request that the trace records and return the digests that the commit's record binds.

    A request that a later signal of the same commit made void is withdrawn when the run ends, like any other.
    """
    binds: dict[str, str] = {}
    for ask in asked:
        packet = bodies[ask.packet] if ask.packet in bodies else hand.shelf[ask.packet]
        new = _build_new_request(hand, ask, packet)
        open_request(hand.tenant, new, at)
        tell_asked(hand, at, new)
        binds[f"request:{ask.request}"] = ask.packet_digest
    return binds


def withdraw_obsolete_requests(hand: ClaimedRun, said: Iterable[TraceEventBody], at: datetime) -> None:
    """Withdraw every request that, according to the trace, needs no answer any more.

    A request that was decided in the meantime stays decided: the decision reaches the run, which records that
    it moved on.
    """
    for body in said:
        if isinstance(body, ApprovalWithdrawn):
            withdraw_one(hand.tenant, UUID(body.request), body.reason, at)


def _build_new_request(hand: ClaimedRun, ask: AskApproval | AskPerson, packet: bytes) -> NewRequest:
    manifest = hand.manifest
    retriers = () if manifest.began is None else retriers_of(hand.run)
    approval = ask if isinstance(ask, AskApproval) else None
    return NewRequest(
        id=ask.request,
        run_id=hand.run,
        call_id=approval.call if approval else f"q{ask.id[:16]}",
        kind=approval.request_kind if approval else "clarification",
        packet=packet,
        packet_digest=ask.packet_digest,
        action_digest=approval.action_digest if approval else "",
        tool=approval.tool if approval else "",
        queue=approval.queue if approval else "submitter",
        quorum=approval.quorum if approval else 1,
        risk=approval.risk if approval else "read_only",
        amount=approval.amount if approval else None,
        has_amount=approval.has_amount if approval else False,
        submitter=manifest.principal,
        submitter_owner=manifest.owner,
        grant_seconds=manifest.pins.boundary.grant_ttl_seconds,
        expires_at=ask.expires_at,
        retriers=[one.principal for one in retriers],
        retrier_owners=[one.owner for one in retriers],
        sealed=approval is not None and holds_reference(packet.decode()),
        answer_schema=None if approval else ask.answer_schema,  # type: ignore[union-attr]
    )
