"""The second half of a commit: write what a walk produced, in lock order, money last."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from approvals.actions import UnusableGrant, consume_grant
from budgets.actions import PostHandle, Reserve, Settle, queue_post
from orchestrator.commit.approval_requests import open_requests, withdraw_obsolete_requests
from orchestrator.commit.budget_grants import apply_budget_grants
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.commit_hooks import pass_on
from orchestrator.commit.read_phase import CommitInput
from orchestrator.commit.run_completion import complete_run
from orchestrator.core.accounting.effect_pricing import price_of_effect
from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.effects import AskApproval, AskPerson, CallModel, CallTool, Effect, Finish
from orchestrator.core.domain.run_events import Headroom, Refusal
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.derived_status import wake_at
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.core.workflow.node_protocol import AdvanceResult, Settlement
from orchestrator.llm.actions.model_queue import FORGET, leaves_line
from orchestrator.outbound.gateways.counters import BREAKER, TALLY
from orchestrator.outbound.gateways.database_authorization import ASK_ALL, CachedAuthorization
from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock
from orchestrator.runs.actions.resource_locks import claim_resource_locks, let_go
from tenancy.db.statement_batch import Batch
from traces.actions import append_transitions, save_snapshot, store_payloads
from traces.core.canonical import canonical_model, compute_digest
from traces.core.events.trace_events import BreakerTripped, TraceEventBody
from traces.core.integrity.chain import Head, LinkedRows, UnchainedTransition, link_transitions

GRACE = timedelta(seconds=2)
INTENTS = """
INSERT INTO orchestrator_intent
  (effect, tenant_id, run_id, kind, fence, record, attempt, tool, tool_digest, argument_digest, key, mutating,
   body, deadline, at) VALUES """
RECEIPTS = "INSERT INTO orchestrator_signalreceipt (id, tenant_id, run_id, record) VALUES "
UPDATE = """
UPDATE orchestrator_run SET
  version = version + 1, takeovers = 0, status = %s, position = %s, wake_at = %s::timestamptz,
  record_number = %s, record_hash = %s, event_seq = %s, event_hash = %s, snapshot_number = %s,
  patch_bytes = %s, terminal_code = %s, reason = %s, result = %s,
  started_at = coalesce(started_at, %s), finished_at = coalesce(finished_at, %s::timestamptz),
  lease_owner = CASE WHEN %s THEN lease_owner END, lease_until = CASE WHEN %s THEN lease_until END
WHERE id = %s"""


class LineRefused(Exception):
    """A budget line refused a reservation."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.dimension)
        self.refusal = refusal


class GrantVoid(Exception):
    """A grant cannot be used any more."""

    def __init__(self, request: str, reason: str) -> None:
        super().__init__(reason)
        self.request, self.reason = request, reason


class CommitResult(NamedTuple):
    """The effects to perform after a commit (none: the run was released). `seq` is its newest event."""

    at: datetime
    effects: tuple[CallModel | CallTool, ...]
    finished: Finish | None
    seq: int


@dataclass(slots=True)
class LinkedTransitions:
    """One walk with the data needed to link it."""

    moves: list[UnchainedTransition]
    event_digest: str
    room: Mapping[str, Any] | None


@dataclass(slots=True)
class CommitPlan:
    """The rows that this commit will write, gathered walk by walk."""

    hand: ClaimedRun
    opened: CommitInput
    bodies: dict[str, bytes]
    walked: list[LinkedTransitions] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    after: RunState | None = None
    patch_bytes: int = 0
    extended: list[tuple[Mapping[str, Decimal], str]] = field(default_factory=list)

    @property
    def state(self) -> RunState:
        """Return the state after the walks so far."""
        return self.after if self.after is not None else self.hand.state

    def add(
        self,
        walk: AdvanceResult,
        moves: list[UnchainedTransition],
        event: str,
        made: Mapping[str, bytes],
        room: Headroom,
    ) -> None:
        """Add a walk to the commit."""
        self.after = walk.state
        self.walked.append(
            LinkedTransitions(moves, event, room.model_dump(mode="json", exclude_defaults=True))
        )
        self.effects.extend(walk.effects)
        self.settlements.extend(walk.settlements)
        self.bodies.update(made)

    def said(self) -> tuple[TraceEventBody, ...]:
        """Return all trace events of this commit."""
        return tuple([one.body for walked in self.walked for move in walked.moves for one in move.said])

    def list_performed_effects(self) -> tuple[CallModel | CallTool, ...]:
        """Return the effects that a worker performs and that are still pending at the end of the commit."""
        pending = self.state.pending
        return tuple(e for e in self.effects if isinstance(e, CallModel | CallTool) and e.id in pending)


def write_commit(script: CommitPlan, cursor: "psycopg.Cursor[Any]") -> "PreparedCommit":
    """Gather the commit and write what cannot wait.

    Raises: LineRefused or GrantVoid, after which the caller rolls back.
    """
    hand, at, said = script.hand, script.opened.at, script.said()
    effects = script.list_performed_effects()
    let_go(hand, script.settlements, cursor)
    claim_resource_locks(hand, effects, cursor)
    binds = _consume_grants(hand, effects, at, cursor)
    asked = [effect for effect in script.effects if isinstance(effect, AskApproval | AskPerson)]
    binds |= open_requests(hand, asked, script.bodies, at)
    withdraw_obsolete_requests(hand, said, at)
    finish = next((effect for effect in script.effects if isinstance(effect, Finish)), None)
    binds |= apply_budget_grants(hand, script.extended, at, cursor)
    if finish is not None:
        binds |= complete_run(hand, at, finish, _build_settlements(script))
    batch = Batch(cursor)
    money = _queue_ledger_post(script, effects, cursor, batch) if finish is None else None
    if money is not None and money.refused is not None:
        raise LineRefused(_build_budget_refusal(money.refused))
    pass_on(hand, said, at, cursor)
    binds |= money.entries if money is not None else {}
    state, snapshot = _build_snapshot(script, binds)
    head = _append_records(script, binds, batch)
    store_payloads(hand.tenant, hand.run, script.bodies, batch=batch)
    if state is not None:
        save_snapshot(hand.tenant, hand.run, head.record_number, state, batch=batch)
    batch.insert(INTENTS, [_build_intent_row(hand, effect, head.record_number, at) for effect in effects])
    batch.insert(RECEIPTS, _build_receipt_rows(script, head.record_number))
    if leaves_line(hand, script.state, asks=any(isinstance(one, CallModel) for one in effects)):
        batch.add(FORGET, (hand.run,))
    batch.add(UPDATE, _build_run_update(script, head, snapshot, keep=bool(effects)))
    written = _build_written_commit(script, head, effects, finish, snapshot, _collect_breaker_trips(said))
    return PreparedCommit(written=written, batch=batch, money=money)


class PreparedCommit(NamedTuple):
    """A commit not yet sent: the rows that it would write and the statement that writes them."""

    written: "WrittenRows"
    batch: Batch
    money: PostHandle | None

    def land(self, hand: ClaimedRun) -> None:
        """Write and commit; in the same round trip ask whether its effects may be sent.

        Raises: RowRefused if a line rejected its change.
        """
        asked = ",".join([e.id for e in self.written.committed.effects if may_be_known(e)])
        at = read_monotonic_clock()
        # An array as text: ids are hex, and the client's own list encoding is fifty times slower.
        answers = self.batch.land(ASK_ALL, (hand.tenant, hand.run, hand.fence, f"{{{asked}}}"))
        hand.permits = {effect: CachedAuthorization(reason, at) for effect, reason in answers or ()}

    def refusal(self, cursor: "psycopg.Cursor[Any]") -> Refusal:
        """Return the line that refused the commit. Raises: LedgerMoved if none does."""
        assert self.money is not None
        return _build_budget_refusal(self.money.why(cursor))


def may_be_known(effect: CallModel | CallTool) -> bool:
    """Return whether the second guard can rely on the commit's answer. A mutating call asks again."""
    return isinstance(effect, CallModel) or not effect.mutating


class WrittenRows(NamedTuple):
    """The result of a commit that was sent, valid once it is committed."""

    committed: CommitResult
    bodies: Mapping[str, bytes]
    state: RunState
    head: Head
    snapshot_number: int
    snapshot_bytes: int
    patch_bytes: int
    tripped: tuple[BreakerTripped, ...] = ()

    def taken_over(self, hand: ClaimedRun) -> CommitResult:
        """Update the claimed run to what was committed, and count the breakers that tripped."""
        for breaker in self.tripped:
            TALLY.add(BREAKER, breaker.breaker, breaker.reason)
        hand.version += 1
        hand.shelf.keep(self.bodies)
        hand.state, hand.head, hand.patch_bytes = self.state, self.head, self.patch_bytes
        hand.snapshot_number, hand.snapshot_bytes = self.snapshot_number, self.snapshot_bytes
        return self.committed


def _build_written_commit(
    script: CommitPlan,
    head: Head,
    effects: tuple[CallModel | CallTool, ...],
    finish: Finish | None,
    snapshot: "Snapped",
    tripped: tuple[BreakerTripped, ...],
) -> WrittenRows:
    committed = CommitResult(at=script.opened.at, effects=effects, finished=finish, seq=head.event_seq)
    return WrittenRows(
        committed=committed,
        bodies=script.bodies,
        state=script.state,
        head=head,
        snapshot_number=snapshot[0],
        snapshot_bytes=snapshot[2],
        patch_bytes=snapshot[1] + script.patch_bytes,
        tripped=tripped,
    )


def _collect_breaker_trips(said: Iterable[TraceEventBody]) -> tuple[BreakerTripped, ...]:
    return tuple([body for body in said if isinstance(body, BreakerTripped)])


def _consume_grants(
    hand: ClaimedRun, effects: tuple[CallModel | CallTool, ...], at: datetime, cursor: "psycopg.Cursor[Any]"
) -> dict[str, str]:
    """Use up the grant of each effect in the transaction that writes the effect's intent (R-APPR-14)."""
    binds: dict[str, str] = {}
    for effect in effects:
        if isinstance(effect, CallTool) and effect.grant is not None and effect.action_digest is not None:
            answer = consume_grant(
                hand.tenant,
                UUID(effect.grant),
                effect_id=effect.id,
                action_digest=effect.action_digest,
                at=at,
                cursor=cursor,
            )
            if isinstance(answer, UnusableGrant):
                raise GrantVoid(effect.grant, answer.reason)
            binds[f"grant:{effect.grant}"] = effect.action_digest
    return binds


def _queue_ledger_post(
    script: CommitPlan,
    effects: tuple[CallModel | CallTool, ...],
    cursor: "psycopg.Cursor[Any]",
    batch: Batch,
) -> PostHandle:
    hand, opened = script.hand, script.opened
    pins, state = hand.manifest.pins, script.state
    reserves = tuple(
        Reserve(effect_id=e.id, amounts=e.reserve, price_version=price_of_effect(pins, state, e))
        for e in effects
    )
    return queue_post(
        hand.tenant,
        hand.run,
        settles=_build_settlements(script),
        reserves=reserves,
        at=opened.at,
        cursor=cursor,
        book=opened.book,
        batch=batch,
        rest=not effects and script.state.status is not Status.IN_PROGRESS,
    )


def _build_settlements(script: CommitPlan) -> tuple[Settle, ...]:
    return tuple(
        Settle(
            effect_id=s.effect,
            reserved=s.reserved,
            actual=s.actual,
            unknown=s.unknown,
            price_version=s.price_version,
        )
        for s in script.settlements
    )


def _build_budget_refusal(refused: Any) -> Refusal:
    return Refusal(
        dimension=refused.dimension.value, limit=refused.limit, left=refused.left, account=refused.account
    )


Snapped = tuple[int, int, int]
LEAST_BETWEEN = 16_384
# A snapshot pays off once the records since the last one have eight times its bytes.
WORTH = 8


def _build_snapshot(script: CommitPlan, binds: dict[str, str]) -> tuple[bytes | None, Snapped]:
    """Serialize the state once the patches outweigh the last snapshot: amortized O(1) per transition."""
    hand = script.hand
    if not script.walked or hand.patch_bytes <= max(LEAST_BETWEEN, WORTH * hand.snapshot_bytes):
        return None, (hand.snapshot_number, hand.patch_bytes, hand.snapshot_bytes)
    number = hand.head.record_number + sum(len(walked.moves) for walked in script.walked)
    state = canonical_model(script.state)
    binds[f"snapshot:{number}"] = compute_digest("state", state)
    return state, (number, 0, len(state))


def _append_records(script: CommitPlan, binds: Mapping[str, str], batch: Batch) -> Head:
    """Link every walk to the chain; the last record binds the digests of the other rows of this commit."""
    head, last = script.hand.head, len(script.walked) - 1
    for index, walked in enumerate(script.walked):
        linked: LinkedRows = link_transitions(
            head,
            walked.moves,
            core_version=CORE_VERSION,
            event_digest=walked.event_digest,
            headroom=walked.room,
            binds=binds if index == last else {},
            at=script.opened.at,
        )
        append_transitions(script.hand.tenant, linked, batch=batch)
        script.patch_bytes += sum(len(record.body) for record in linked.records)
        head = linked.head
    return head


def _build_intent_row(
    hand: ClaimedRun, effect: CallModel | CallTool, record: int, at: datetime
) -> tuple[object, ...]:
    tool = effect if isinstance(effect, CallTool) else None
    return (
        effect.id,
        hand.tenant,
        hand.run,
        effect.kind,
        hand.fence,
        record,
        effect.attempt,
        tool.tool if tool else "",
        tool.tool_digest if tool else "",
        tool.argument_digest if tool else "",
        tool.key if tool else "",
        tool.mutating if tool else False,
        canonical_model(effect),
        at + timedelta(milliseconds=effect.timeout_ms) + GRACE,
        at,
    )


def _build_receipt_rows(script: CommitPlan, record: int) -> list[tuple[object, ...]]:
    hand = script.hand
    return [(signal.id, hand.tenant, hand.run, record) for signal in script.opened.signals]


def _build_run_update(script: CommitPlan, head: Head, snapshot: Snapped, *, keep: bool) -> tuple[object, ...]:
    """Build the run's one update under the fence. Without effects to perform it releases the lease."""
    hand, state, at = script.hand, script.state, script.opened.at
    return (
        state.status.value,
        state.position,
        wake_at(state, hand.manifest.goal.deadline),
        head.record_number,
        head.record_hash,
        head.event_seq,
        head.event_hash,
        snapshot[0],
        snapshot[1] + script.patch_bytes,
        state.outcome.value if state.outcome else "",
        state.reason[:500],
        state.result or "",
        at,
        at if state.outcome is not None else None,
        keep,
        keep,
        hand.run,
    )
