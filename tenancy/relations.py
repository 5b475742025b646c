"""Reads of who is related to whom in a tenant, and of who stands behind a principal (R-APPR-5). Inside the
tenant's context."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from tenancy.clock import database_now
from tenancy.core.relations import ROLE_RELATES_FOR, Tie, TieKind, find_related
from tenancy.models import KeyMaker, PersonTie, Principal


def are_related(first_person_id: UUID, second_person_id: UUID) -> bool:
    """True if the two are related now, directly or through others, or are one person."""
    return second_person_id in related_people(first_person_id)


def related_people(person_id: UUID) -> frozenset[UUID]:
    """Everybody related to the person now, directly or through others, and the person themself."""
    now = database_now()
    return find_related(person_id, read_ties(now), now)


def read_ties(now: datetime) -> list[Tie]:
    """The ties that matter at a moment. Roles given long before matter only to the question which
    confirmations counted."""
    rows = PersonTie.objects.order_by("at", "id")
    if not rows.filter(kind=TieKind.CONFIRMED.value).exists():
        rows = rows.exclude(kind=TieKind.ROLE_GIVEN.value, at__lte=now - ROLE_RELATES_FOR)
    found = rows.values_list("kind", "person_id", "by_id", "at")
    return [Tie(TieKind(kind), person, by, at) for kind, person, by, at in found]


def people_behind(principals: Iterable[UUID]) -> dict[UUID, frozenset[UUID]]:
    """The people whose deeds a principal's deeds are: who answers for it and, of a key, everybody who was
    shown its secret. An unknown principal is left out."""
    ids = list(principals)
    found = {
        one: {owner} for one, owner in Principal.objects.filter(id__in=ids).values_list("id", "owner_id")
    }
    for principal, person in KeyMaker.objects.filter(principal_id__in=ids).values_list(
        "principal_id", "person_id"
    ):
        found[principal].add(person)
    return {principal: frozenset(people) for principal, people in found.items()}
