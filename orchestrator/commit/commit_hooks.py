"""Notify others than the run of a commit: budget alerts, tool drift and what failed runs left behind.

The hooks run in the commit's transaction. Without such an event no statement is executed.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

from budgets.actions import tell_refused
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.notifications.actions.run_notifications import tell_late, tell_left
from orchestrator.tools.actions.schema_drift import note_drifts
from traces.core.events.trace_events import ReservationRefused, TraceEventBody


def pass_on(
    hand: ClaimedRun, said: Sequence[TraceEventBody], at: datetime, cursor: "psycopg.Cursor[Any]"
) -> None:
    """Pass the commit's events to each subscriber.

    Joins the commit's transaction, after its money: settlement also locks the tenant's lines before an
    alert's row.
    """
    for body in said:
        # Cost refused by the tenant's ceiling per day or month.
        if (
            isinstance(body, ReservationRefused)
            and body.account.startswith("tenant")
            and body.dimension == "cost_usd"
        ):
            tell_refused(hand.tenant, body.wanted, at, cursor)
    note_drifts(hand, said, at)
    tell_left(hand, said, at, cursor)
    tell_late(hand, said, at, cursor)
