"""One small patch per safety rule: each takes exactly one wall down for the length of a block.

Code walls are replaced where they are used; walls in the database are taken down by a superuser and put up
again.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import psycopg

from approvals import actions as approving
from approvals.actions import ConsumedGrant, DecisionInput
from budgets.actions import queue_post
from orchestrator.commit import commit as committing
from orchestrator.commit import read_phase, write_phase
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.read_phase import LeaseLost, RetryContext
from orchestrator.commit.write_phase import CommitResult
from orchestrator.outbound import actions as circuit_breakers
from orchestrator.tools.gateways import dispatcher
from orchestrator.worker import leases
from orchestrator.worker.effects import effect_executor
from orchestrator.worker.effects.effect_executor import Outcomes
from orchestrator.worker.run_loop import Worker, inject_no_fault
from tenancy.db import tenant_context
from tenancy.db.tenant_context import tenant_reading

Superuser = psycopg.Connection
Wall = Callable[[Superuser], AbstractContextManager[None]]


@contextmanager
def without(module: Any, name: str, *removed: str) -> Iterator[None]:
    """A statement without some of its conditions. Raises AssertionError when one does not stand in it any
    more.
    """
    statement: str = getattr(module, name)
    for condition in removed:
        found = re.compile(rf"\s+AND {re.escape(condition)}(::\w+)?(?!\w)")
        assert found.search(statement), f"{name} has no {condition!r}: the sabotage misses its wall"
        statement = found.sub("", statement)
    with mock.patch.object(module, name, statement):
        yield


@contextmanager
def no_fence(_: Superuser) -> Iterator[None]:
    """A commit does not ask whose the run is."""
    with without(read_phase, "OPEN", "fence = %(fence)s", "lease_owner = %(worker)s"):
        yield


@contextmanager
def no_lease_owner(_: Superuser) -> Iterator[None]:
    """A commit does not ask whether the lease was given back."""
    with without(read_phase, "OPEN", "lease_owner = %(worker)s"):
        yield


@contextmanager
def no_lease(_: Superuser) -> Iterator[None]:
    """A claim does not ask whether somebody holds the run."""
    with without(leases, "CLAIM", "(lease_owner IS NULL OR lease_until < clock_timestamp())"):
        yield


@contextmanager
def no_consume(_: Superuser) -> Iterator[None]:
    """A grant is taken for good without being used up."""
    with mock.patch.object(write_phase, "consume_grant", return_value=ConsumedGrant()):
        yield


@contextmanager
def no_action_digest(_: Superuser) -> Iterator[None]:
    """A grant is good for any action."""
    with without(approving, "CONSUME", "granted_action = %(action)s"):
        yield


@contextmanager
def no_packet_digest(_: Superuser) -> Iterator[None]:
    """It does not matter which packet a reviewer saw."""
    unheeded = approving._decide_pending

    def decide(request: Any, standing: Any, word: DecisionInput, *more: Any) -> Any:
        return unheeded(request, standing, replace(word, packet_digest=None), *more)

    with mock.patch.object(approving, "_decide_pending", decide):
        yield


class _Anything(str):
    """A status that every status equals; its text is what the database is asked for."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


@contextmanager
def no_pending(_: Superuser) -> Iterator[None]:
    """A request may be decided although it is decided: neither the check nor the conditional update asks."""
    with mock.patch.object(approving, "PENDING", _Anything("decided")):
        yield


@contextmanager
def no_reserve(_: Superuser) -> Iterator[None]:
    """An effect's amounts are not held before it is performed."""

    def unreserved(*given: Any, reserves: Any, **more: Any) -> Any:
        return queue_post(*given, reserves=(), **more)

    with mock.patch.object(write_phase, "queue_post", unreserved):
        yield


@contextmanager
def no_dispatch_row(_: Superuser) -> Iterator[None]:
    """A sender does not ask whether somebody gave the call up."""
    with mock.patch.object(effect_executor, "claim_dispatch", return_value=True):
        yield


@contextmanager
def no_permit(_: Superuser) -> Iterator[None]:
    """A gateway sends without asking the database."""
    with mock.patch.object(dispatcher, "check_before_send", return_value=None):
        yield


@contextmanager
def no_write_ahead(_: Superuser) -> Iterator[None]:
    """Effects are performed before the commit that decides them; the fault point `hasty` lies between."""
    committed = Worker._commit

    def hasty(
        self: Worker, hand: ClaimedRun, outcomes: Outcomes, *rest: Any, **more: Any
    ) -> CommitResult | None:
        effects = _decided(hand, outcomes)
        if effects:
            self.performer.perform(hand, effects, inject_no_fault)
            self.fault("hasty")
        return committed(self, hand, outcomes, *rest, **more)

    with mock.patch.object(Worker, "_commit", hasty):
        yield


class _Undo(Exception):
    """Roll back what was only tried."""


def _decided(hand: ClaimedRun, outcomes: Outcomes) -> Any:
    """What the next commit would ask of the world, without committing it."""
    effects: Any = ()
    try:
        with tenant_reading(hand.tenant, read_phase.OPEN, hand.keys) as rows:
            opened = read_phase.read_opened(hand, rows)
            room = read_phase.build_headroom(hand, opened, RetryContext(), slice_over=False)
            draft = committing._prepare_commit(hand, outcomes.events, dict(outcomes.bodies), opened, room)
            effects = draft.written.committed.effects
            raise _Undo
    except (_Undo, LeaseLost):
        return effects


@contextmanager
def no_probe_lease(_: Superuser) -> Iterator[None]:
    """A probe does not ask whether another is out."""
    let_out = """(until <= clock_timestamp()
   OR state = 'half_open' AND prober = %(run)s AND prober_fence < %(fence)s)"""
    with without(circuit_breakers, "PROBE", let_out):
        yield


@contextmanager
def no_tenant_name(_: Superuser) -> Iterator[None]:
    """`tenant()` opens its transaction and names nobody in it."""
    with (
        mock.patch.object(tenant_context, "_NAME", "SELECT %s::text"),
        mock.patch.object(tenant_context, "_NAMED", b"SELECT $1::text"),
    ):
        yield


@contextmanager
def no_guard(_: Superuser) -> Iterator[None]:
    """Nobody notices a query outside every tenant."""
    with mock.patch.object(
        tenant_context, "_compile_table_pattern", return_value=re.compile("(no such table)")
    ):
        yield


@contextmanager
def no_row_security(superuser: Superuser) -> Iterator[None]:
    """The table of runs shows every tenant's rows."""
    superuser.execute("ALTER TABLE orchestrator_run DISABLE ROW LEVEL SECURITY")
    try:
        yield
    finally:
        superuser.execute("ALTER TABLE orchestrator_run ENABLE ROW LEVEL SECURITY")


@contextmanager
def no_request_trigger(superuser: Superuser) -> Iterator[None]:
    """The table of requests takes any change."""
    superuser.execute("ALTER TABLE approvals_request DISABLE TRIGGER request_once")
    try:
        yield
    finally:
        superuser.execute("ALTER TABLE approvals_request ENABLE TRIGGER request_once")
