"""The closed list of what crosses tenants: functions that return ids only (docs/operations.md)."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

_NEXT = "SELECT run, tenant_of_run(run) FROM next_run(%s::uuid[], %s) AS run"


def _list_ids(call: str, parameters: tuple[Any, ...]) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(call, parameters)
        return [row[0] for row in cursor.fetchall() if row[0] is not None]


def tenant_of_run(run_id: UUID) -> UUID | None:
    """Whose run it is, or None where there is no such run."""
    return next(iter(_list_ids("SELECT tenant_of_run(%s)", (run_id,))), None)


def due_runs(limit: int) -> list[UUID]:
    """Runs that wait for nobody and yet stand still: signals wait, the lease is dead, or their time has
    come."""
    return _list_ids("SELECT due_runs(%s)", (limit,))


def abandoned_runs(limit: int) -> list[UUID]:
    """Runs whose lease lives and names the lock of a process that holds it no more."""
    return _list_ids("SELECT abandoned_runs(%s)", (limit,))


def deferred_runs(limit: int) -> list[UUID]:
    """Runs with a request to which a yes was kept back whose time has come."""
    return _list_ids("SELECT deferred_runs(%s)", (limit,))


def called_up_runs(limit: int) -> list[UUID]:
    """Runs that waited for a model and may ask it now; of those behind a circuit whose cooldown is over, one.
    Also those that an emergency stop ends."""
    return _list_ids("SELECT called_up_runs(%s)", (limit,))


def next_run(taken: Sequence[UUID], share: int) -> tuple[UUID, UUID] | None:
    """The ready run whose turn it is and whose it is, or None (R-BUDGET-11): of the tenant with the fewest
    runs at work, among equals of the one whose last run began longest ago, its oldest.

    `taken` are the runs that the caller has in hand or will not have; a tenant with `share` of them has no
    turn.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, (list(taken), share))
        found: tuple[UUID, UUID] | None = cursor.fetchone()
        return found
