"""What others than the run hear of a commit, in its transaction: whoever looks after the tenant's money, its
tools and what its runs left behind. Without such a word no statement.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

from budgets.actions import tell_refused
from orchestrator.actions.claimed_run import ClaimedRun
from orchestrator.actions.run_notifications import tell_late, tell_left
from orchestrator.actions.schema_drift import note_drifts
from traces.core.events.trace_events import ReservationRefused, TraceEventBody


def pass_on(
    hand: ClaimedRun, said: Sequence[TraceEventBody], at: datetime, cursor: "psycopg.Cursor[Any]"
) -> None:
    """Tell them, each of theirs. Joins the commit's transaction, after its money: whoever squares holds the
    tenant's lines before an alert's row, too."""
    for body in said:
        # What the tenant's day or month could not bear.
        if (
            isinstance(body, ReservationRefused)
            and body.account.startswith("tenant")
            and body.dimension == "cost_usd"
        ):
            tell_refused(hand.tenant, body.wanted, at, cursor)
    note_drifts(hand, said, at)
    tell_left(hand, said, at, cursor)
    tell_late(hand, said, at, cursor)
