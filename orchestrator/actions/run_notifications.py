"""What a tenant's endpoints and people are told of its runs, in the transactions in which it happens
(R-API-6, R-TOOL-15).

Names and words of ours alone: what came from outside is read by the ids, under the reader's own rights.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import psycopg

from approvals.actions.new_request import NewRequest
from orchestrator.actions.claimed_run import ClaimedRun
from orchestrator.core.compensation.plan import REJECTED, REPORTED
from orchestrator.core.domain.effects import Finish
from orchestrator.core.engine.late_reconciliation import NOTHING_SENT
from orchestrator.core.readmodel.reason_texts import left_in_words
from orchestrator.models import Intent
from orchestrator.queries.retry_lineage import retried_as
from tenancy.core.event_kinds import APPROVAL_ASKED, RETRY_OUTDATED, RUN_ENDED, UNDO_FAILED
from tenancy.db.tenant_context import raw_cursor
from tenancy.notifications.outgoing import tell_people, write_outgoing_message
from traces.core.events.trace_events import DeedLeft, LateOutcome, TraceEventBody

# What a person, or the boundary's author, wanted left as it is, is no news to them.
WANTED: Final = (REPORTED, REJECTED)
MOST_LEFT: Final = 50


def tell_ended(hand: ClaimedRun, at: datetime, finish: Finish) -> None:
    """That the run came to its end. Joins the transaction; one statement."""
    data = {
        "run": str(hand.run), "workflow": hand.manifest.workflow, "status": finish.status.value,
        "terminal_code": finish.code.value, "has_result": finish.result is not None,
    }  # fmt: skip
    write_outgoing_message(hand.tenant, RUN_ENDED, f"run:{hand.run}", data, at=at, cursor=raw_cursor())


def tell_asked(hand: ClaimedRun, at: datetime, request: NewRequest) -> None:
    """That people are asked something. Joins the transaction; one statement."""
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
    """That actions of a run that failed stand, though nobody wanted them to: one notice for all that a commit
    leaves, named by the first, so that it is one whatever is taken over. Joins the transaction."""
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
    """That a change of a run may have happened after all, of which the retry that was begun meanwhile does
    not know. Joins the transaction; without a late outcome no statement."""
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
