"""The first half of a commit: lock the run's row under its fence and read all input in one statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from budgets.account_snapshot import BOOK, AccountSnapshot, read_book
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.domain.run_events import AnyEvent, EffectLookedUp, Headroom, Refusal
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.core.policy.rules import Policy
from orchestrator.core.tools.circuit_breaker import Circuit, is_circuit_blocking
from orchestrator.outbound.actions import TOLD
from orchestrator.policies.queries.policies import policy_of
from orchestrator.tools.gateways.availability import list_unavailable_tools
from tenancy.queries import standing_of
from traces.core.canonical import payload_digest

# One statement with the columns of budgets' BOOK and one more text column. The row is locked first: a worker
# that had to wait for the lock has lost the run.
OPEN = f"""
WITH held AS MATERIALIZED (
  SELECT clock_timestamp() AS at FROM orchestrator_run
   WHERE id = %(run)s AND fence = %(fence)s AND version = %(version)s AND lease_owner = %(worker)s
     FOR NO KEY UPDATE)
SELECT 'held' AS what, NULL::uuid AS id, NULL::uuid, NULL::uuid, at, NULL::timestamptz,
       NULL::numeric AS number, NULL::numeric, NULL::numeric, NULL::numeric, NULL::text AS word,
       NULL::text AS more
  FROM held
UNION ALL
SELECT 'signal', s.by, NULL, NULL, NULL, NULL, s.id, NULL, NULL, NULL, s.kind, s.payload::text FROM (
  SELECT i.* FROM orchestrator_runsignal i
   WHERE i.run_id = %(run)s AND NOT EXISTS (SELECT 1 FROM orchestrator_signalreceipt r WHERE r.id = i.id)
   ORDER BY i.id LIMIT 50) s
UNION ALL
SELECT 'stop', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, scope,
       json_build_array(target, reason, risk)::text
  FROM orchestrator_emergencystop
 WHERE lifted_at IS NULL AND (tenant_id IS NULL OR tenant_id = %(tenant)s)
UNION ALL
SELECT 'circuit', NULL, NULL, NULL, until, NULL, failures, changes, NULL, NULL, state,
       json_build_array(kind, subject, reason)::text
  FROM orchestrator_circuitrow
 WHERE {TOLD} AND (tenant_id IS NULL OR tenant_id = %(tenant)s)
UNION ALL
SELECT b.*, NULL FROM ({BOOK}) b"""  # noqa: S608 - a statement of budgets' own


LOOK_UP = "look_up"

# Each commit sets all fields. A copy made by `evolve` is not validated again.
_ROOM = Headroom()


@dataclass(slots=True)
class RetryContext:
    """Facts that an earlier try of the same commit learned from the database."""

    refused: tuple[Refusal, ...] = ()
    void: dict[str, str] | None = None
    lost: tuple[str, ...] = ()
    policy: Policy | None = None
    busy: tuple[str, ...] = ()
    run_ceiling: Decimal | None = None

    def refusal(self, refusal: Refusal) -> None:
        """Record that a line refused a reservation; an earlier refusal of the same dimension is replaced."""
        others = tuple(known for known in self.refused if known.dimension != refusal.dimension)
        self.refused = (*others, refusal)


class InputsChanged(Exception):
    """Something moved since the walk began; it is made again with what was learnt."""

    def teach(self, learnt: RetryContext) -> None:
        """Add what the next try has to know."""
        raise NotImplementedError


class ScopesLost(InputsChanged):
    """The submitter may not do any more what it was admitted to do."""

    def __init__(self, scopes: tuple[str, ...]) -> None:
        super().__init__(", ".join(scopes))
        self.scopes = scopes

    def teach(self, learnt: RetryContext) -> None:
        """Pass on the scopes that are gone."""
        learnt.lost = self.scopes


class PolicyMoved(InputsChanged):
    """Another policy than the pinned one is in force, and this commit is about to act."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.digest)
        self.policy = policy

    def teach(self, learnt: RetryContext) -> None:
        """Pass on the policy that applies together with the pinned one."""
        learnt.policy = self.policy


class LeaseLost(Exception):
    """Another worker has the run."""


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One signal as it was sent."""

    id: int
    kind: str
    payload: Mapping[str, Any]
    by: UUID | None


@dataclass(frozen=True, slots=True)
class StopRow:
    """One emergency stop in force; one of scope `risk` raises a tool's class to `risk`."""

    scope: str
    target: str
    reason: str
    risk: str = ""


class CommitInput(NamedTuple):
    """The input of a commit. `at` is the commit's only time."""

    at: datetime
    signals: tuple[SignalRow, ...]
    stops: tuple[StopRow, ...]
    book: AccountSnapshot | None
    circuits: Mapping[tuple[str, str], Circuit]


def read_opened(hand: ClaimedRun, rows: Sequence[tuple[Any, ...]]) -> CommitInput:
    """Parse the rows that `OPEN` returned.

    Raises: LeaseLost if the run's row is not this worker's to write.
    """
    at: datetime | None = None
    signals, stops, book = [], [], []
    circuits: dict[tuple[str, str], Circuit] = {}
    for row in rows:
        what, word, more = row[0], row[-2], row[-1]
        if what == "held":
            at = row[4]
        elif what == "signal":
            signals.append(SignalRow(int(row[6]), word, orjson.loads(more), row[1]))
        elif what == "stop":
            stops.append(StopRow(word, *orjson.loads(more)))
        elif what == "circuit":
            kind, subject, reason = orjson.loads(more)
            circuits[kind, subject] = Circuit(
                state=word, failures=int(row[6]), changes=int(row[7]), until=row[4], reason=reason
            )
        else:
            book.append(row[:-1])
    if at is None:
        raise LeaseLost
    return CommitInput(
        at=at,
        signals=tuple(sorted(signals, key=lambda signal: signal.id)),
        stops=tuple(stops),
        book=read_book(hand.run, book),
        circuits=circuits,
    )


def without_look_ups(opened: CommitInput, outcomes: Sequence[AnyEvent]) -> CommitInput:
    """Return the input without the look-up requests whose outcome this commit does not bring.

    The next worker that claims the run still finds them.
    """
    made = {event.change.effect for event in outcomes if isinstance(event, EffectLookedUp)}
    taken = (s for s in opened.signals if s.kind != LOOK_UP or s.payload["change"]["effect"] in made)
    return opened._replace(signals=tuple(taken))


def build_headroom(
    hand: ClaimedRun, opened: CommitInput, learnt: RetryContext, *, slice_over: bool, called_up: bool = False
) -> Headroom:
    """Build the headroom that the core receives together with the event."""
    cost: Decimal | None = opened.book.tenant_cost(opened.at) if opened.book is not None else None
    windows = None if opened.book is None else opened.book.windows
    window, limit = ("", None) if windows is None else windows.scarcer
    stopped = tuple(stop.target for stop in opened.stops if stop.scope == "tool")
    raised = {stop.target: Risk(stop.risk) for stop in opened.stops if stop.scope == "risk"}
    return _ROOM.evolve(
        tenant_cost=cost,
        tenant_window=window,
        tenant_limit=limit,
        refused=learnt.refused,
        void=learnt.void or {},
        open_circuits=_open_tools(hand, opened),
        stopped_tools=stopped,
        raised_tools=raised,
        unavailable=list_unavailable_tools(hand.manifest.pins.by_name, hand.graph.spec.tools),
        missing_scopes=learnt.lost,
        policy=learnt.policy,
        busy=learnt.busy,
        run_ceiling=learnt.run_ceiling,
        slice_over=slice_over,
        called_up=called_up,
    )


def _open_tools(hand: ClaimedRun, opened: CommitInput) -> tuple[str, ...]:
    """Return the run's tools whose circuits currently block calls."""
    if not opened.circuits:
        return ()
    shut = [key for key, circuit in opened.circuits.items() if is_circuit_blocking(circuit, opened.at)]
    return tuple(tool.name for tool in hand.manifest.pins.tools if ("tool", tool.name) in shut)


def still_allowed(hand: ClaimedRun, known: tuple[str, ...]) -> None:
    """Check that the submitter still holds the scopes of the admission (Z5).

    A role may be lost while a run waits.

    Raises: ScopesLost if a lost scope is not among the `known` losses.
    """
    standing = standing_of(hand.tenant, hand.manifest.principal)
    held = () if standing is None else tuple(scope.value for scope in standing.scopes)
    lost = tuple(scope for scope in hand.manifest.scopes if scope not in held)
    if set(lost) - set(known):
        raise ScopesLost(lost)


def policy_in_force(hand: ClaimedRun, stops: tuple[StopRow, ...], known: Policy | None) -> None:
    """Check that the newest policy is the pinned one (R-TOOL-4).

    If they differ, the stricter decision of the two applies. The check costs nothing if they are the same.

    Raises: PolicyMoved with a policy that is not yet `known`.
    """
    pinned = hand.manifest.pins.policy
    if known is not None:
        return
    newest = next((stop.target for stop in stops if stop.scope == "policy"), pinned.digest)
    if newest != pinned.digest and (policy := policy_of(newest)) is not None:
        raise PolicyMoved(policy)


def stop_for(hand: ClaimedRun, stops: tuple[StopRow, ...]) -> StopRow | None:
    """Return the emergency stop that ends this run, if any. A tool's stop only blocks the tool."""
    for stop in stops:
        if stop.scope in ("global", "tenant") or (
            stop.scope == "workflow" and stop.target == hand.manifest.workflow
        ):
            return stop
    return None


def digest_of(hand: ClaimedRun, body: bytes) -> str:
    """Return the digest under which the run stores content."""
    return payload_digest(hand.salt, body)
