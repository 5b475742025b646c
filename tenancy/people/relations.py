"""Queries of relations between people, and of the people behind a principal (R-APPR-5).

In the tenant's context.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Q

from tenancy.core.relations import (
    ROLE_RELATES_FOR,
    Actors,
    Closeness,
    Tie,
    TieKind,
    find_closeness,
    find_connected,
    find_link_holders,
    find_related,
    find_ties_in_force,
    may_vouch_for,
)
from tenancy.db.clock import database_now
from tenancy.models import KeyMaker, Membership, Person, PersonTie, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The people who act when a principal acts, and the people related to them.

    `people` are the person responsible for the principal and, for a key, everyone who was shown its secret;
    `related` are these people and everyone related to one of them. `keys` and `related_keys` are the
    principals of the keys whose secrets `people` and `related` were shown.
    """

    people: frozenset[UUID]
    related: frozenset[UUID]
    keys: frozenset[UUID]
    related_keys: frozenset[UUID]


def relations_of(principal_id: UUID, owner_id: UUID) -> Relations:
    """Return the current relations of one principal, whose responsible person is `owner_id`."""
    return relations_by_principal({principal_id: owner_id})[principal_id]


def find_closeness_to(principal_id: UUID, owner_id: UUID, doers: Actors[UUID]) -> Closeness:
    """Return how close a principal with this owner is now to what others did."""
    found = relations_of(principal_id, owner_id)
    own = Actors(found.keys | {principal_id}, found.people | {owner_id})
    return find_closeness(own, Actors(found.related_keys, found.related), doers)


def relations_by_principal(owners: Mapping[UUID, UUID], at: datetime | None = None) -> dict[UUID, Relations]:
    """Return the relations of each principal at a time, or now; `owners` maps principals to owners."""
    moment = at or database_now()
    in_force = find_ties_in_force(read_ties(moment), moment)
    behind = {principal: {owner} for principal, owner in owners.items()}
    related, makers = _collect_related_people(behind, in_force), _list_key_makers(owners, behind, in_force)
    if any(made in behind for made, _ in makers):
        for made, person in makers:
            if made in behind:
                behind[made].add(person)
        related, makers = (
            _collect_related_people(behind, in_force),
            _list_key_makers(owners, behind, in_force),
        )
    keys: dict[UUID, set[UUID]] = defaultdict(set)
    for made, person in makers:
        keys[person].add(made)
    return {
        principal: Relations(
            people=frozenset(people), related=related[principal], keys=_all_of(keys, people),
            related_keys=_all_of(keys, related[principal]),
        )
        for principal, people in behind.items()
    }  # fmt: skip


def _collect_related_people(
    behind: Mapping[UUID, Iterable[UUID]], in_force: list[Tie]
) -> dict[UUID, frozenset[UUID]]:
    return {
        principal: frozenset[UUID]().union(*(find_connected(one, in_force) for one in people))
        for principal, people in behind.items()
    }


def _list_key_makers(
    principals: Iterable[UUID], behind: Mapping[UUID, Iterable[UUID]], in_force: list[Tie]
) -> list[tuple[UUID, UUID]]:
    """Return (key, person) for every disclosure of a key's secret that concerns these principals.

    These are the disclosures of their own keys, and all disclosures to anyone related to them.
    """
    people = frozenset[UUID]().union(*_collect_related_people(behind, in_force).values())
    shown = Q(principal_id__in=list(principals)) | Q(person_id__in=list(people))
    return list(KeyMaker.objects.filter(shown).values_list("principal_id", "person_id"))


def _all_of(keys: Mapping[UUID, set[UUID]], people: Iterable[UUID]) -> frozenset[UUID]:
    return frozenset[UUID]().union(*(keys.get(one, set()) for one in people))


def are_related(first_person_id: UUID, second_person_id: UUID) -> bool:
    """Return whether the two are related now, directly or through others, or are one person."""
    return second_person_id in related_people(first_person_id)


def related_people(person_id: UUID) -> frozenset[UUID]:
    """Return everyone related to the person now, directly or through others, including the person."""
    now = database_now()
    return find_related(person_id, read_ties(now), now)


def read_ties(now: datetime) -> list[Tie]:
    """Return the ties that matter at a time.

    Roles given earlier than 24 hours before matter only for which confirmations counted, so they are read
    only if there is a confirmation.
    """
    rows = PersonTie.objects.order_by("at", "id").values_list("kind", "person_id", "by_id", "at")
    found = list(rows.exclude(kind=TieKind.ROLE_GIVEN.value, at__lte=now - ROLE_RELATES_FOR))
    if any(kind == TieKind.CONFIRMED.value for kind, *_ in found):
        found = list(rows)
    return [Tie(TieKind(kind), person, by, at) for kind, person, by, at in found]


def people_with_link(person_id: UUID, tenant_id: UUID) -> set[UUID]:
    """Return everyone who saw the person's first-password link in a tenant other than this, transitively.

    "Transitively" includes people who saw the link of such a viewer. One of the closed list of look-ups that
    cross tenants.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT people_with_link(%s, %s)", (person_id, tenant_id))
        return {row[0] for row in cursor.fetchall()}


def must_await_confirmation(tenant_id: UUID, person_id: UUID, inviters: Iterable[UUID]) -> bool:
    """Return whether a role given to the person now has no effect until the person is confirmed here.

    The confirmation is needed if someone saw the person's first-password link in another tenant and cannot
    act as one of the `inviters` anyway. Further roles follow the first one.
    """
    held = list(Membership.objects.filter(person_id=person_id).values_list("awaits_confirmation", flat=True))
    holders = set() if held else people_with_link(person_id, tenant_id)
    if not holders:
        return any(held)
    now = database_now()
    in_force = find_ties_in_force(read_ties(now), now)
    links = PersonTie.objects.filter(person_id=person_id, kind=TieKind.LINK_SEEN.value)
    confirmed = set(links.values_list("by_id", flat=True))
    confirmed -= {tie.by for tie in in_force if tie.kind is TieKind.LINK_SEEN and tie.person == person_id}
    return not holders <= confirmed | find_link_holders(inviters, in_force)


def awaits_confirmation(person_id: UUID) -> bool:
    """Return whether the person can do nothing in the tenant before being confirmed."""
    return Membership.objects.filter(person_id=person_id, awaits_confirmation=True).exists()


def may_vouch(principal_id: UUID, owner_id: UUID, person_id: UUID) -> bool:
    """Return whether a principal with this owner may confirm a person who awaits confirmation.

    A role that the person was given just now does not prevent the confirmation.
    """
    now = database_now()
    people = relations_of(principal_id, owner_id).people
    return may_vouch_for(person_id, people, find_ties_in_force(read_ties(now), now))


def people_behind(principals: Iterable[UUID]) -> dict[UUID, frozenset[UUID]]:
    """Return the people to whom a principal's acts are attributed, by principal.

    These are the person responsible for the principal and, for a key, everyone who was shown its secret. An
    unknown principal is omitted.
    """
    ids = list(principals)
    found = {
        one: {owner} for one, owner in Principal.objects.filter(id__in=ids).values_list("id", "owner_id")
    }
    for principal, person in KeyMaker.objects.filter(principal_id__in=ids).values_list(
        "principal_id", "person_id"
    ):
        found[principal].add(person)
    return {principal: frozenset(people) for principal, people in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTie:
    """A tie in force of a person, with names. `until` None: until `person` is confirmed."""

    kind: TieKind
    by: str
    person: str
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinship:
    """A person's relations, whether the reader may confirm the person, and whether the person awaits this."""

    ties: tuple[NamedTie, ...]
    may_confirm: bool
    awaited: bool = False


def find_kinship(principal_id: UUID, owner_id: UUID, people: Iterable[UUID]) -> dict[UUID, Kinship]:
    """Return the ties of each of these people, as one reader may see and confirm them."""
    now = database_now()
    in_force = find_ties_in_force(read_ties(now), now)
    reader = relations_of(principal_id, owner_id)
    awaiting = set(Membership.objects.filter(awaits_confirmation=True).values_list("person_id", flat=True))
    names = dict(
        Person.objects.filter(id__in={one for tie in in_force for one in (tie.by, tie.person)}).values_list(
            "id", "name"
        )
    )

    def of(person: UUID) -> Kinship:
        own = [tie for tie in in_force if person in (tie.by, tie.person)]
        links = any(tie.kind is TieKind.LINK_SEEN and tie.person == person for tie in own)
        ties = (
            NamedTie(kind=tie.kind, by=names[tie.by], person=names[tie.person], until=tie.ends_at())
            for tie in own
        )
        awaited = person in awaiting
        may = person not in reader.related or (awaited and may_vouch_for(person, reader.people, in_force))
        return Kinship(ties=tuple(ties), may_confirm=links and may, awaited=awaited)

    return {person: of(person) for person in people}
