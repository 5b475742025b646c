"""What a tenant's endpoints are told of its runs, in the transactions in which it happens (R-API-6).

Names and words of ours alone: what came from outside is read by the ids, under the reader's own rights.
"""

from datetime import datetime

from approvals.actions import NewRequest
from orchestrator.actions.hand import Hand
from orchestrator.core.effects import Finish
from tenancy.context import raw_cursor
from tenancy.core.news import APPROVAL_ASKED, RUN_ENDED
from tenancy.news import tell


def tell_ended(hand: Hand, at: datetime, finish: Finish) -> None:
    """That the run came to its end. Joins the transaction; one statement."""
    data = {
        "run": str(hand.run), "workflow": hand.manifest.workflow, "status": finish.status.value,
        "terminal_code": finish.code.value, "has_result": finish.result is not None,
    }  # fmt: skip
    tell(hand.tenant, RUN_ENDED, f"run:{hand.run}", data, at=at, cursor=raw_cursor())


def tell_asked(hand: Hand, at: datetime, request: NewRequest) -> None:
    """That people are asked something. Joins the transaction; one statement."""
    data = {
        "request": str(request.id), "run": str(hand.run), "workflow": hand.manifest.workflow,
        "kind": request.kind, "tool": request.tool, "risk": request.risk, "queue": request.queue,
        "packet_digest": request.packet_digest, "expires_at": request.expires_at.isoformat(),
    }  # fmt: skip
    tell(hand.tenant, APPROVAL_ASKED, f"request:{request.id}", data, at=at, cursor=raw_cursor())
