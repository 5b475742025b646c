"""Other arguments that people agreed to while a request waits, and how many must (R-APPR-3, R-APPR-5).

All inside the tenant's context.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from approvals.core.errors import DecisionInvalid
from approvals.core.lifecycle import DecisionKind, RequestStatus
from approvals.core.quorum import count_agreeing_people
from approvals.models import Decision, Request
from approvals.ports import EditJudgement, check_edit
from approvals.queries.countable_votes import counting_votes
from traces.core.errors import NotCanonical


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedEdit:
    """An edit that somebody agreed to: `quorum` people must, `agreed` have. `first` proposed
    it."""

    arguments: Any
    first: Decision
    quorum: int
    agreed: int

    @property
    def remaining_approvals(self) -> int:
        """How many people more must agree to these very arguments."""
        return max(0, self.quorum - self.agreed)


def judge_edit(request: Request, arguments: Any) -> EditJudgement:
    """Other arguments for what a request asks, as they would be granted: how many people must agree to them,
    what they move and what they risk. Raises DecisionInvalid."""
    if not isinstance(arguments, dict):
        raise DecisionInvalid(detail="an edit gives the arguments as an object", pointer="/arguments")
    try:
        judged = check_edit(request.tenant_id, request.run_id, request.call_id, arguments)
    except NotCanonical as error:
        raise DecisionInvalid(detail=str(error), pointer="/arguments") from None
    if judged.body is None:
        raise DecisionInvalid(detail=judged.refusal, pointer="/arguments")
    if judged.action_digest == request.action_digest:
        raise DecisionInvalid(detail="the edit changes nothing: approve instead", pointer="/arguments")
    return judged


def standing_edits(request: Request, decisions: Sequence[Decision]) -> tuple[AgreedEdit, ...]:
    """The edits that wait for more people, in the order they were proposed; none once the request is settled.

    Each is judged as it would be when the next person agrees to it; one that would be refused is left out.
    """
    if request.status != RequestStatus.PENDING:
        return ()
    first: dict[bytes, Decision] = {}
    for decision in decisions:
        if decision.kind == DecisionKind.EDIT and decision.arguments is not None:
            first.setdefault(bytes(decision.arguments), decision)
    votes, found = counting_votes(request, decisions), []
    for body, decision in first.items():
        arguments = orjson.loads(body)
        judged = check_edit(request.tenant_id, request.run_id, request.call_id, arguments)
        if judged.body is not None:
            found.append(
                AgreedEdit(
                    arguments=arguments,
                    first=decision,
                    quorum=judged.quorum,
                    agreed=count_agreeing_people(votes, body),
                )
            )
    return tuple(found)


def quorum_under_way(request: Request, edits: Sequence[AgreedEdit]) -> int:
    """How many people must agree to the edit that was proposed last; without one to what was asked."""
    return edits[-1].quorum if edits else request.quorum


def missing_for(request: Request, decisions: Sequence[Decision], arguments: Any) -> int:
    """How many people more must agree: to these other arguments, or (None) to what was asked."""
    if arguments is None:
        return max(0, request.quorum - count_agreeing_people(counting_votes(request, decisions), None))
    for edit in standing_edits(request, decisions):
        if edit.arguments == arguments:
            return edit.remaining_approvals
    return 1
