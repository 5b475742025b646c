"""Relations of people in a tenant: related people do not count as two independent ones (R-APPR-5).

Two people are related for 24 hours after one gave the other a role. Two people are related without a time
limit after one saw the link with which the other sets a first password, because the viewer can sign in as the
other person. That relation ends when an administrator who is related to neither confirms the other person.
Relations are symmetric and transitive.
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
    """Relation of a person to the people who did something."""

    NONE = ""
    OWN = "own"
    RELATED = "related"


class Actors(NamedTuple, Generic[Name]):
    """The principals of an act, and the people who are responsible for them or were shown their secrets."""

    principals: Collection[Name]
    people: Collection[Name]

    def overlaps(self, others: "Actors[Name]") -> bool:
        """Return whether the two have a principal or a person in common."""
        return not (
            set(self.principals).isdisjoint(others.principals) and set(self.people).isdisjoint(others.people)
        )


def find_closeness(own: Actors[Name], related: Actors[Name], doers: Actors[Name]) -> Closeness:
    """Return how close a decider is to what `doers` did: the only such rule in the system (R-APPR-23).

    `own` are the actors whose acts count as the decider's; `related` also includes everyone related to them.
    """
    if own.overlaps(doers):
        return Closeness.OWN
    return Closeness.RELATED if related.overlaps(doers) else Closeness.NONE


class TieKind(StrEnum):
    """Act of one person that relates the person to another, or that ends such a relation."""

    ROLE_GIVEN = "role_given"
    LINK_SEEN = "link_seen"
    CONFIRMED = "confirmed"


class Tie(NamedTuple):
    """`by` gave `person` a role, saw the person's first-password link, or confirmed the person, at a time."""

    kind: TieKind
    person: UUID
    by: UUID
    at: datetime

    def ends_at(self) -> datetime | None:
        """Return when the tie expires; None if it lasts until the person is confirmed."""
        return self.at + ROLE_RELATES_FOR if self.kind is TieKind.ROLE_GIVEN else None


def find_related(person: UUID, ties: Iterable[Tie], at: datetime) -> frozenset[UUID]:
    """Return everyone related to `person` at a time, directly or through others, including the person."""
    return find_connected(person, find_ties_in_force(ties, at))


def find_ties_in_force(ties: Iterable[Tie], at: datetime) -> list[Tie]:
    """Return the ties that relate two people at a time.

    These are roles given within the last 24 hours, and seen links of people who have not been confirmed
    since. A confirmation counts only if the confirming person was, at that time, unrelated to the person and
    therefore to everyone who had seen the link.
    """
    in_force: list[Tie] = []
    # Among ties of the same time a confirmation is last: it is checked against all ties of that time, and
    # does not end a link of exactly that time.
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
    """Return the connected component of `person` in the graph whose edges are the ties in force."""
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
    """Return whether the person's first-password link was seen and no confirmation followed."""
    return any(_is_open_link(tie, person) for tie in find_ties_in_force(ties, at))


def may_vouch_for(person: UUID, people: Collection[UUID], in_force: Iterable[Tie]) -> bool:
    """Return whether these people may confirm that an account is controlled by its own person.

    None of them may be related to the person or to anyone who saw the link. A role that the person was given
    is ignored.
    """
    left = [tie for tie in in_force if not (tie.kind is TieKind.ROLE_GIVEN and tie.person == person)]
    return find_connected(person, left).isdisjoint(people)


def find_link_holders(people: Iterable[UUID], in_force: Iterable[Tie]) -> frozenset[UUID]:
    """Return everyone who can act as these people.

    These are the people themselves, everyone who saw the link of one of them, and so on transitively.
    """
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
