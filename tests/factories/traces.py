"""A small valid trace: four commits of a run that calls a tool, finds a fact and ends."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from tenancy.db.ids import fresh_id
from tenancy.db.statement_batch import Batch
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from traces import ports
from traces.actions import append_transitions, open_salt, save_snapshot, store_payloads
from traces.core.canonical import compute_digest, encode_canonical, payload_digest
from traces.core.events import trace_events
from traces.core.events.phases import Phase
from traces.core.integrity.chain import Head, LinkedRows, TraceEntry, UnchainedTransition, link_transitions
from traces.core.state_patch import Plain, apply_patch

NOON = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
PERSON = "0198a000-0000-7000-8000-000000000001"


def said(
    body: trace_events.TraceEventBody, phase: Phase = Phase.TOOL_INVOCATION, actor: str = "interlock"
) -> TraceEntry:
    """One event."""
    return TraceEntry(phase=int(phase), actor=actor, body=body)


def move(
    *words: TraceEntry, patch: dict[str, Any] | None = None, target: str = "next"
) -> UnchainedTransition:
    """One transition."""
    return UnchainedTransition(
        source="here", outcome="ok", guard=None, target=target, phase=int(words[0].phase) if words else 8,
        patch=patch or {}, said=words, effects=("e" * 32,),
    )  # fmt: skip


@dataclass
class Pen:
    """Writes one run's trace, commit by commit, as the ring does."""

    tenant: UUID
    run: UUID = field(default_factory=fresh_id)
    head: Head = field(init=False)
    salt: bytes = field(init=False)
    state: Plain = field(default_factory=lambda: {"version": 0, "facts": {}})

    def __post_init__(self) -> None:
        self.head = Head.start(self.run)
        with tenant_transaction(self.tenant), Batch(raw_cursor()) as batch:
            self.salt = open_salt(self.tenant, self.run, batch=batch)

    def content(self, text: str) -> tuple[str, bytes]:
        """A payload: its digest and its bytes."""
        return payload_digest(self.salt, text.encode()), text.encode()

    def linked(
        self,
        *moves: UnchainedTransition,
        event: str = "",
        binds: dict[str, str] | None = None,
        minutes: int = 0,
    ) -> LinkedRows:
        """Moves chained onto the head, which goes along."""
        linked = link_transitions(
            self.head, moves, core_version=1, event_digest=event, headroom={"left": {"steps": "9"}},
            binds=binds or {}, at=NOON + timedelta(minutes=minutes),
        )  # fmt: skip
        self.head = linked.head
        return linked

    def commit(
        self, *moves: UnchainedTransition, bodies: dict[str, bytes] | None = None, snapshot: bool = False
    ) -> LinkedRows:
        """Write moves in one transaction, with content and perhaps a snapshot."""
        for one in moves:
            self.state = apply_patch(self.state, orjson.loads(encode_canonical(one.patch)))
        state, number = encode_canonical(self.state), self.head.record_number + len(moves)
        binds = {f"snapshot:{number}": compute_digest("state", state)} if snapshot else {}
        linked = self.linked(*moves, binds=binds, minutes=number)
        with tenant_transaction(self.tenant), Batch(raw_cursor()) as batch:
            append_transitions(self.tenant, linked, batch=batch)
            store_payloads(self.tenant, self.run, bodies or {}, batch=batch)
            if snapshot:
                save_snapshot(self.tenant, self.run, number, state, batch=batch)
        return linked


def write_run(tenant_id: UUID) -> Pen:
    """A finished run: 5 records, 8 events, 2 snapshots, 3 payloads."""
    pen = Pen(tenant_id)
    goal, arguments, observation = (
        pen.content(text) for text in ('"refund A-1"', '{"order":"A-1"}', '{"paid":12}')
    )
    submitted = trace_events.TaskSubmitted(
        task=str(fresh_id()), workflow="support-refund", workflow_version=1, graph="a" * 64,
        manifest="b" * 64, boundary="c" * 64, goal=goal[0], mode="async", principal=PERSON,
    )  # fmt: skip
    pen.commit(move(said(submitted, Phase.GOAL_INTAKE, PERSON)), bodies=dict([goal]), snapshot=True)
    pen.commit(
        move(said(trace_events.RunStarted(), Phase.STATE_INIT), patch={"version": {"set": 1}}),
        move(said(attempted(arguments[0])), patch={"version": {"set": 2}}),
        bodies=dict([arguments]),
    )
    fact = {"facts": {"put": {"order": {"digest": observation[0], "values": {"paid": 12}}}}}
    pen.commit(
        move(*observed(observation[0]), patch={"version": {"set": 3}, **fact}),
        bodies=dict([observation]),
        snapshot=True,
    )
    finished = trace_events.RunFinished(terminal_code="SUCCESS", terminal_class="success", status="completed")
    pen.commit(move(said(finished, Phase.TRACE_LOGGING), patch={"version": {"set": 4}}, target="end"))
    return pen


def attempted(arguments: str) -> trace_events.CallAttempted:
    """The intent of the one call."""
    return trace_events.CallAttempted(
        call="c1", effect="e" * 32, tool="orders.lookup", tool_version="1", arguments=arguments,
        argument_digest="d" * 64, idempotency_key="k1", attempt=1, mutating=False,
    )  # fmt: skip


def observed(observation: str) -> tuple[TraceEntry, ...]:
    """What came of it: seen, paid for, verified, kept."""
    return (
        said(
            trace_events.CallObserved(
                call="c1", effect="e" * 32, status="ok", observation=observation, size=11
            )
        ),
        said(trace_events.BudgetSettled(effect="e" * 32, amounts={"tool_calls": Decimal(1)})),
        said(
            trace_events.CallVerified(call="c1", validator="order_exists", verdict="verified"),
            Phase.OBSERVATION_GROUNDING,
        ),
        said(
            trace_events.FactCommitted(
                fact="order",
                version=1,
                digest=observation,
                call="c1",
                observation=observation,
                validator="order_exists",
                trust="trusted",
            ),
            Phase.STATE_UPDATE,
        ),
    )


class OneRun:
    """The floor above, with one run."""

    def __init__(self, head: Head, pinned: ports.PinnedManifest | None) -> None:
        self._head, self._pinned = head, pinned

    def heads(self, run_id: UUID | None = None) -> dict[UUID, Head]:
        """Its head."""
        return {self._head.run: self._head} if run_id in (None, self._head.run) else {}

    def load_pins(self, run_id: UUID) -> ports.PinnedManifest | None:
        """Its pins."""
        return self._pinned if run_id == self._head.run else None


def one_run(head: Head, pinned: ports.PinnedManifest | None = None) -> AbstractContextManager[None]:
    """While it lasts, the floor above knows this run and no other."""
    return registered(OneRun(head, pinned))


@contextmanager
def registered(runs: ports.Runs) -> Iterator[None]:
    """While it lasts, `runs` is the floor above."""
    before = ports.get_runs_port()
    ports.register_runs(runs)
    try:
        yield
    finally:
        ports.register_runs(before)
