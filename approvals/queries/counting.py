"""Which words count towards a quorum at this moment (R-APPR-5). Inside the tenant's context."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from approvals.core.lifecycle import AGREEING, RequestStatus
from approvals.core.policy import Asked, refusal
from approvals.core.quorum import Vote
from approvals.models import Decision, Request
from approvals.queries import votes_of
from approvals.queries.people import asked_of, deciders_of
from tenancy.queries import standing_of


def counting_votes(
    request: Request, decisions: Sequence[Decision], asked: Asked | None = None, at: datetime | None = None
) -> list[Vote]:
    """The words as far as counting goes, without each agreement of somebody who may not decide the request
    any more, and without that of whoever has become related to somebody who agreed to the same before.

    `asked` is what the agreement is to, where that is not what the request asks. Once it is settled all of
    them counted.
    """
    votes = votes_of(decisions)
    agreeing = [vote for vote in votes if vote.kind in AGREEING]
    if request.status != RequestStatus.PENDING or not agreeing:
        return votes
    standings = (standing_of(request.tenant_id, UUID(vote.principal)) for vote in agreeing)
    deciders = deciders_of([one for one in standings if one is not None], at)
    wanted = asked or asked_of(request)
    kept: list[Vote] = []
    for vote in votes:
        if vote.kind not in AGREEING:
            kept.append(vote)
            continue
        decider = deciders.get(UUID(vote.principal))
        if decider is None or refusal(wanted, decider) is not None:
            continue
        beside = [one for one in kept if one.kind in AGREEING and one.arguments == vote.arguments]
        if not any(decider.is_related_to((one.principal,), (one.owner,)) for one in beside):
            kept.append(vote)
    return kept
