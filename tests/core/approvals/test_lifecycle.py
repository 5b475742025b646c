"""The drawing of a request's states is the one that the code follows."""

import pytest

from approvals.core.lifecycle import (
    AGREEING,
    CAUSES,
    FITTING,
    MOVES,
    Cause,
    DecisionKind,
    RequestStatus,
)
from tests.proves import proves


@proves("R-APPR-2", part="nothing leaves an end")
def test_every_cause_leads_from_pending_to_an_end() -> None:
    assert set(MOVES) == set(Cause)
    assert {move.source for move in MOVES.values()} == {RequestStatus.PENDING}
    assert {move.target for move in MOVES.values()} == set(RequestStatus) - {RequestStatus.PENDING}


@proves("R-APPR-3", part="closed kinds")
@pytest.mark.parametrize("kind", list(DecisionKind))
def test_every_word_fits_one_kind_of_request_and_decides_it(kind: DecisionKind) -> None:
    kinds = [name for name, fitting in FITTING.items() if kind in fitting]
    assert kinds == ["action", "budget"] if kind is DecisionKind.REJECT else len(kinds) == 1
    assert MOVES[CAUSES[kind]].target is RequestStatus.DECIDED


@proves("A5")
def test_only_people_who_say_yes_grant_anything() -> None:
    assert AGREEING == (DecisionKind.APPROVE, DecisionKind.EDIT)
    assert [kind for kind in DecisionKind if CAUSES[kind] is Cause.AGREED] == list(AGREEING)
    assert MOVES[Cause.TIME_UP].target is RequestStatus.EXPIRED
