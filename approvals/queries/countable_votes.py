"""Which words count towards a quorum at this moment (R-APPR-5). Inside the tenant's context."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from approvals.core.lifecycle import AGREEING, RequestStatus
from approvals.core.policy import Decider, RequestFacts, explain_decision_refusal
from approvals.core.quorum import Vote
from approvals.models import Decision, Request
from approvals.queries import votes_of
from approvals.queries.people import asked_of, deciders_of
from tenancy.queries import standings_of


def counting_votes(
    request: Request,
    decisions: Sequence[Decision],
    asked: RequestFacts | None = None,
    at: datetime | None = None,
) -> list[Vote]:
    """The words as far as counting goes, without each agreement of somebody who may not decide the request
    any more, and without that of whoever has become related to somebody who agreed to the same before.

    `asked` is what the agreement is to, where that is not what the request asks. Once it is settled all of
    them counted.
    """
    return _select_counting_votes(request, votes_of(decisions), _deciders([(request, decisions)], at), asked)


def counting_by_request(
    requests: Mapping[UUID, Request], said: Mapping[UUID, Sequence[Decision]]
) -> dict[UUID, list[Vote]]:
    """`counting_votes` of many requests, in as many queries as for one."""
    deciders = _deciders([(requests[one], decisions) for one, decisions in said.items()], None)
    return {
        one: _select_counting_votes(requests[one], votes_of(decisions), deciders, None)
        for one, decisions in said.items()
    }


def _deciders(
    several: Sequence[tuple[Request, Sequence[Decision]]], at: datetime | None
) -> Mapping[UUID, Decider]:
    """Those who agreed while a request waits, as far as they have a standing now."""
    waiting = [
        (request, decision)
        for request, decisions in several
        for decision in decisions
        if request.status == RequestStatus.PENDING and decision.kind in AGREEING
    ]
    if not waiting:
        return {}
    standings = standings_of(waiting[0][0].tenant_id, {decision.principal for _, decision in waiting})
    return deciders_of(standings, at)


def _select_counting_votes(
    request: Request, votes: list[Vote], deciders: Mapping[UUID, Decider], asked: RequestFacts | None
) -> list[Vote]:
    if request.status != RequestStatus.PENDING:
        return votes
    wanted, kept = asked or asked_of(request), list[Vote]()
    for vote in votes:
        if vote.kind not in AGREEING:
            kept.append(vote)
            continue
        decider = deciders.get(UUID(vote.principal))
        if decider is None or explain_decision_refusal(wanted, decider) is not None:
            continue
        beside = [one for one in kept if one.kind in AGREEING and one.arguments == vote.arguments]
        if not any(decider.is_related_to((one.principal,), (one.owner,)) for one in beside):
            kept.append(vote)
    return kept
