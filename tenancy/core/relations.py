"""Which people of a tenant are related: related people do not stand in for two independent ones (R-APPR-5).

Two people are related for 24 hours after one gave the other a role. They are related without an end after
one saw the link by which the other sets a first password, because that person can sign in as the other, until
an administrator who is related to neither confirms the other. Relations run in both directions and through
others.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import UUID

ROLE_RELATES_FOR: Final = timedelta(hours=24)
Name = TypeVar("Name", bound=Hashable)


class Closeness(StrEnum):
    """How close somebody is to what others did."""

    NONE = ""
    OWN = "own"
    RELATED = "related"


class Actors(NamedTuple, Generic[Name]):
    """Who did something: the principals, and the people who answer for them or were shown their secrets."""

    principals: Collection[Name]
    people: Collection[Name]

    def overlaps(self, others: "Actors[Name]") -> bool:
        """True if a principal or a person is among both."""
        return not (
            set(self.principals).isdisjoint(others.principals) and set(self.people).isdisjoint(others.people)
        )


def find_closeness(own: Actors[Name], related: Actors[Name], doers: Actors[Name]) -> Closeness:
    """How close a decider is to what `doers` did: the one rule that every door asks (R-APPR-23).

    `own` are those whose deeds count as the decider's, `related` are they and everybody related to them.
    """
    if own.overlaps(doers):
        return Closeness.OWN
    return Closeness.RELATED if related.overlaps(doers) else Closeness.NONE


class TieKind(StrEnum):
    """What one person did that relates them to another, or that ends it."""

    ROLE_GIVEN = "role_given"
    LINK_SEEN = "link_seen"
    CONFIRMED = "confirmed"


class Tie(NamedTuple):
    """`by` gave `person` a role, saw their first-password link, or confirmed them, at a moment."""

    kind: TieKind
    person: UUID
    by: UUID
    at: datetime

    def ends_at(self) -> datetime | None:
        """When it relates no more by itself; None: not before somebody confirms the person."""
        return self.at + ROLE_RELATES_FOR if self.kind is TieKind.ROLE_GIVEN else None


def find_related(person: UUID, ties: Iterable[Tie], at: datetime) -> frozenset[UUID]:
    """Everybody related to `person` at a moment, directly or through others; the person is one of them."""
    return find_connected(person, find_ties_in_force(ties, at))


def find_ties_in_force(ties: Iterable[Tie], at: datetime) -> list[Tie]:
    """The ties that relate two people at a moment: roles given within 24 hours, and seen links of people whom
    nobody has confirmed since.

    A confirmation counts only if it was given by somebody who was unrelated, at that time, to the person and
    so to everybody who had seen the link.
    """
    in_force: list[Tie] = []
    # Of one moment a confirmation comes last: it is judged by all that relates people then, and ends no link
    # of that very moment.
    for tie in sorted(ties, key=lambda one: (one.at, one.kind is TieKind.CONFIRMED)):
        if tie.at > at:
            break
        if tie.kind is not TieKind.CONFIRMED:
            in_force.append(tie)
            continue
        in_force = _select_unexpired_ties(in_force, tie.at)
        if tie.by not in find_connected(tie.person, in_force):
            in_force = [one for one in in_force if not (_is_open_link(one, tie.person) and one.at < tie.at)]
    return _select_unexpired_ties(in_force, at)


def find_connected(person: UUID, in_force: Iterable[Tie]) -> frozenset[UUID]:
    """The connected component of `person` in the graph whose edges are the ties in force."""
    neighbors: dict[UUID, set[UUID]] = defaultdict(set)
    for tie in in_force:
        neighbors[tie.person].add(tie.by)
        neighbors[tie.by].add(tie.person)
    found, queue = {person}, [person]
    while queue:
        new = neighbors[queue.pop()] - found
        found |= new
        queue.extend(new)
    return frozenset(found)


def has_open_link(person: UUID, ties: Iterable[Tie], at: datetime) -> bool:
    """True if somebody saw the person's first-password link and nobody has confirmed the person since."""
    return any(_is_open_link(tie, person) for tie in find_ties_in_force(ties, at))


def may_vouch_for(person: UUID, people: Collection[UUID], in_force: Iterable[Tie]) -> bool:
    """True if these people may say that an account is in its person's own hands: none of them is related to
    the person or to whoever saw the link, but for a role that the person was given."""
    left = [tie for tie in in_force if not (tie.kind is TieKind.ROLE_GIVEN and tie.person == person)]
    return find_connected(person, left).isdisjoint(people)


def find_link_holders(people: Iterable[UUID], in_force: Iterable[Tie]) -> frozenset[UUID]:
    """These people, and everybody who saw the link of one of them or of somebody who did: who can act as
    them."""
    seen_by: dict[UUID, set[UUID]] = defaultdict(set)
    for tie in in_force:
        if tie.kind is TieKind.LINK_SEEN:
            seen_by[tie.person].add(tie.by)
    found, queue = set(people), list(people)
    while queue:
        new = seen_by[queue.pop()] - found
        found |= new
        queue.extend(new)
    return frozenset(found)


def _is_open_link(tie: Tie, person: UUID) -> bool:
    return tie.kind is TieKind.LINK_SEEN and tie.person == person


def _select_unexpired_ties(ties: Sequence[Tie], at: datetime) -> list[Tie]:
    return [tie for tie in ties if (end := tie.ends_at()) is None or at < end]
