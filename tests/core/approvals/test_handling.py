"""Whose a request is, and who put it aside, from what was done with it."""

from datetime import UTC, datetime, timedelta

from approvals.core.assignment import (
    AssignmentAction,
    AssignmentRecord,
    asleep_until,
    derive_assignee,
    snooze_fault,
)
from tests.proves import proves

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


def done(
    kind: AssignmentAction, owner: str = "ann", to: str = "", until: datetime | None = None
) -> AssignmentRecord:
    """One thing that was done."""
    return AssignmentRecord(kind=kind, owner=owner, to=to, until=until)


@proves("R-APPR-9", part="whose it is")
def test_the_newest_of_claims_gifts_and_releases_holds() -> None:
    claimed, given = done(AssignmentAction.CLAIM, to="ann"), done(AssignmentAction.ASSIGN, to="bob")
    assert derive_assignee([]) == ""
    assert derive_assignee([claimed, done(AssignmentAction.COMMENT)]) == "ann"
    assert derive_assignee([claimed, given]) == "bob"
    assert derive_assignee([claimed, given, done(AssignmentAction.RELEASE)]) == ""


@proves("R-APPR-9", part="put aside by one, not by all")
def test_what_somebody_put_aside_rests_for_them_until_then() -> None:
    aside = done(AssignmentAction.SNOOZE, until=LATER)
    assert asleep_until([aside], "ann", NOON) == LATER
    assert asleep_until([aside], "bob", NOON) is None
    assert asleep_until([aside], "ann", LATER) is None
    assert asleep_until([aside, done(AssignmentAction.WAKE)], "ann", NOON) is None


def test_nothing_is_put_aside_beyond_its_time() -> None:
    assert snooze_fault(LATER, NOON, LATER + timedelta(minutes=1)) == ""
    assert snooze_fault(LATER, NOON, LATER) == "the request expires before that"
    assert snooze_fault(NOON, NOON, LATER) == "this moment has passed"
