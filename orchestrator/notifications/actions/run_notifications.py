"""Notify a tenant's endpoints and people of its runs, in the transactions of the events.

A notice holds only names and texts of this system. Content from outside is read by the ids, under the
reader's own rights.

Spec: R-API-6, R-TOOL-15.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import psycopg

from approvals.actions.new_request import NewRequest
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.core.compensation.plan import REJECTED, REPORTED
from orchestrator.core.domain.effects import Finish
from orchestrator.core.engine.late_reconciliation import NOTHING_SENT
from orchestrator.core.readmodel.reason_texts import left_in_words
from orchestrator.runs.models.run import Intent
from orchestrator.runs.queries.retry_lineage import retried_as
from tenancy.core.event_kinds import APPROVAL_ASKED, RETRY_OUTDATED, RUN_ENDED, UNDO_FAILED
from tenancy.db.tenant_context import raw_cursor
from tenancy.notifications.outgoing import tell_people, write_outgoing_message
from traces.core.events.trace_events import DeedLeft, LateOutcome, TraceEventBody

# An action left in place because a person or the boundary wanted that needs no notice.
WANTED: Final = (REPORTED, REJECTED)
MOST_LEFT: Final = 50


def tell_ended(hand: ClaimedRun, at: datetime, finish: Finish) -> None:
    """Notify that the run ended. Joins the transaction; one statement."""
    data = {
        "run": str(hand.run), "workflow": hand.manifest.workflow, "status": finish.status.value,
        "terminal_code": finish.code.value, "has_result": finish.result is not None,
    }  # fmt: skip
    write_outgoing_message(hand.tenant, RUN_ENDED, f"run:{hand.run}", data, at=at, cursor=raw_cursor())


def tell_asked(hand: ClaimedRun, at: datetime, request: NewRequest) -> None:
    """Notify that a request to people was opened. Joins the transaction; one statement."""
    data = {
        "request": str(request.id), "run": str(hand.run), "workflow": hand.manifest.workflow,
        "kind": request.kind, "tool": request.tool, "risk": request.risk, "queue": request.queue,
        "packet_digest": request.packet_digest, "expires_at": request.expires_at.isoformat(),
    }  # fmt: skip
    write_outgoing_message(
        hand.tenant, APPROVAL_ASKED, f"request:{request.id}", data, at=at, cursor=raw_cursor()
    )


def tell_left(
    hand: ClaimedRun, said: Sequence[TraceEventBody], at: datetime, cursor: "psycopg.Cursor[Any]"
) -> None:
    """Notify people of the actions that a failed run left in place although no one wanted that.

    One notice covers all actions that a commit leaves. The first action names the notice, so that it stays
    one notice whichever worker takes over. Joins the transaction.
    """
    left = [body for body in said if isinstance(body, DeedLeft) and body.why not in WANTED]
    if not left:
        return
    data = {
        "run": str(hand.run), "workflow": hand.manifest.workflow,
        "count": len(left),
        "left": [
            {"call": body.call, "tool": body.tool, "why": body.why, "says": left_in_words(body.why)}
            for body in left[:MOST_LEFT]
        ],
    }  # fmt: skip
    tell_people(hand.tenant, UNDO_FAILED, f"{hand.run}:{left[0].call}"[:100], data, at=at, cursor=cursor)


def tell_late(
    hand: ClaimedRun, said: Sequence[TraceEventBody], at: datetime, cursor: "psycopg.Cursor[Any]"
) -> None:
    """Notify people of a change that may have happened after all, unknown to a retry already begun.

    Joins the transaction; without a late outcome no statement is executed.
    """
    late = [body for body in said if isinstance(body, LateOutcome) and body.status not in NOTHING_SENT]
    if not late or (retry := retried_as(hand.run)) is None:
        return
    effects = [body.effect for body in late]
    sent = Intent.objects.filter(run_id=hand.run, mutating=True, effect__in=effects)
    if not (tools := sorted(set(sent.values_list("tool", flat=True)))):
        return
    data = {
        "run": str(retry), "before": str(hand.run), "workflow": hand.manifest.workflow, "tools": tools,
    }  # fmt: skip
    tell_people(hand.tenant, RETRY_OUTDATED, f"{hand.run}:{effects[0]}"[:100], data, at=at, cursor=cursor)
