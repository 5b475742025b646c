"""Who is related to whom: the connected component, its directions, its 24 hours, and confirmations."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenancy.core.relations import Tie, TieKind, find_related, find_ties_in_force, has_open_link
from tests.proves import proves

START = datetime(2030, 3, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
ANN, BOB, EVE, ZOE, MAX = (UUID(int=number) for number in range(1, 6))
PEOPLE = (ANN, BOB, EVE, ZOE, MAX)
ROLE, LINK, CONFIRMED = TieKind.ROLE_GIVEN, TieKind.LINK_SEEN, TieKind.CONFIRMED
MOMENTS = st.integers(0, 72).map(lambda hour: START + hour * HOUR)


def tie(kind: TieKind, by: UUID, person: UUID, hour: float = 0) -> Tie:
    """`by` did it to `person` at an hour."""
    return Tie(kind, person, by, START + hour * HOUR)


@st.composite
def drawn_ties(draw: st.DrawFn) -> list[Tie]:
    """Some ties between five people within three days."""
    pairs = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)).filter(lambda two: two[0] != two[1])
    drawn = draw(st.lists(st.tuples(st.sampled_from(TieKind), pairs, MOMENTS), max_size=12))
    return [Tie(kind, person, by, at) for kind, (person, by), at in drawn]


@proves("R-APPR-5", part="related, both directions")
@given(ties=drawn_ties(), at=MOMENTS)
def test_related_people_are_a_partition(ties: list[Tie], at: datetime) -> None:
    groups = {person: find_related(person, ties, at) for person in PEOPLE}
    for person, group in groups.items():
        assert person in group
        assert all(groups[other] == group for other in group)


@given(ties=drawn_ties(), at=MOMENTS, again=st.permutations(range(12)))
def test_related_people_do_not_depend_on_the_order_of_rows(
    ties: list[Tie], at: datetime, again: list[int]
) -> None:
    turned = [ties[place] for place in again if place < len(ties)]
    assert find_related(ANN, turned, at) == find_related(ANN, ties, at)


@proves("R-APPR-5", part="related through others")
@given(ties=drawn_ties(), at=MOMENTS)
def test_every_related_person_is_reached_by_ties_in_force(ties: list[Tie], at: datetime) -> None:
    pairs = {frozenset((one.person, one.by)) for one in find_ties_in_force(ties, at)}
    groups = [{person} for person in PEOPLE]
    for pair in pairs:
        touched = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair] + [set().union(*touched)]
    assert {find_related(person, ties, at) for person in PEOPLE} == set(map(frozenset, groups))


@given(ties=drawn_ties(), at=MOMENTS)
def test_a_role_or_link_more_never_unrelates(ties: list[Tie], at: datetime) -> None:
    for kind in (ROLE, LINK):
        more = [*ties, Tie(kind, ANN, BOB, at)]
        assert find_related(ANN, ties, at) <= find_related(ANN, more, at)
        assert BOB in find_related(ANN, more, at)


@given(ties=drawn_ties(), at=MOMENTS)
def test_a_confirmation_by_a_related_person_changes_nothing(ties: list[Tie], at: datetime) -> None:
    for by in find_related(ANN, ties, at) - {ANN}:
        more = [*ties, Tie(CONFIRMED, ANN, by, at)]
        assert find_ties_in_force(more, at) == find_ties_in_force(ties, at)


@given(ties=drawn_ties(), at=MOMENTS)
def test_a_confirmation_by_an_unrelated_person_ends_every_seen_link(ties: list[Tie], at: datetime) -> None:
    for by in set(PEOPLE) - find_related(ANN, ties, at + HOUR / 2):
        assert not has_open_link(ANN, [*ties, Tie(CONFIRMED, ANN, by, at + HOUR / 2)], at + HOUR / 2)


@pytest.mark.parametrize(("hours", "related"), [(0, True), (23.99, True), (24, False), (100, False)])
def test_a_role_relates_for_twenty_four_hours(hours: float, related: bool) -> None:
    found = find_related(BOB, [tie(ROLE, ANN, BOB)], START + hours * HOUR)
    assert (ANN in found) is related


def test_a_tie_of_the_future_relates_nobody_yet() -> None:
    assert find_related(ANN, [tie(LINK, ANN, BOB, 1)], START) == {ANN}


@proves("A8", part="a seen link until somebody unrelated confirms")
def test_a_seen_link_relates_without_an_end() -> None:
    assert BOB in find_related(ANN, [tie(LINK, ANN, BOB)], START + timedelta(days=4_000))


@proves("A8", part="a seen link until somebody unrelated confirms")
@pytest.mark.parametrize(
    ("before", "by", "counts"),
    [
        ([], ZOE, True),
        ([], ANN, False),
        ([], BOB, False),
        ([(ROLE, ANN, ZOE, 0)], ZOE, False),
        ([(ROLE, BOB, ZOE, 0)], ZOE, False),
        ([(ROLE, ZOE, BOB, 0)], ZOE, False),
        ([(ROLE, ANN, EVE, 0), (ROLE, EVE, ZOE, 0)], ZOE, False),
        ([(LINK, MAX, ZOE, 0), (ROLE, MAX, ANN, 0)], ZOE, False),
        ([(ROLE, ANN, ZOE, -30)], ZOE, True),
    ],
)
def test_a_confirmation_counts_where_it_was_given_by_somebody_unrelated_then(
    before: list[tuple[TieKind, UUID, UUID, float]], by: UUID, counts: bool
) -> None:
    ties = [tie(LINK, ANN, BOB, 0), *(tie(*one) for one in before), tie(CONFIRMED, by, BOB, 1)]
    for later in (2, 1_000):
        assert has_open_link(BOB, ties, START + later * HOUR) is not counts


def test_a_confirmation_ends_no_link_seen_later_or_of_another_person() -> None:
    ties = [
        tie(LINK, ANN, BOB, 0),
        tie(LINK, ANN, EVE, 0),
        tie(CONFIRMED, ZOE, BOB, 1),
        tie(LINK, MAX, BOB, 1),
    ]
    assert find_related(BOB, ties, START + 2 * HOUR) == {BOB, MAX}
    assert find_related(EVE, ties, START + 2 * HOUR) == {EVE, ANN}


def test_a_confirmation_does_not_end_the_day_of_a_role() -> None:
    ties = [tie(ROLE, ANN, BOB, 0), tie(LINK, ANN, BOB, 0), tie(CONFIRMED, ZOE, BOB, 1)]
    assert ANN in find_related(BOB, ties, START + 2 * HOUR)
    assert ANN not in find_related(BOB, ties, START + 24 * HOUR)
