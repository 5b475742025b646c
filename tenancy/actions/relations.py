"""The only writers of why two people are related, and of who knows a key's secret (R-APPR-5). Each joins the
caller's transaction, in the tenant's context, so that the deed and its record are one."""

from collections.abc import Iterable
from uuid import UUID

from tenancy.core.relations import TieKind
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.models import KeyMaker, PersonTie
from tenancy.people.relations import people_behind, people_with_link


def record_tie(tenant_id: UUID, kind: TieKind, person_id: UUID, *, by: UUID) -> None:
    """Record that the people behind the principal `by` did this to a person. Nobody is tied to themself."""
    record_tie_by_people(tenant_id, kind, person_id, by=people_behind([by]).get(by, frozenset()))


def record_tie_by_people(tenant_id: UUID, kind: TieKind, person_id: UUID, *, by: Iterable[UUID]) -> None:
    """Record that these people, who need not belong to the tenant, did this to a person. Nobody is tied to
    themself."""
    at = database_now()
    PersonTie.objects.bulk_create(
        PersonTie(id=fresh_id(), tenant_id=tenant_id, kind=kind.value, person_id=person_id, by_id=one, at=at)
        for one in sorted(set(by) - {person_id})
    )


def record_links_seen_elsewhere(tenant_id: UUID, person_id: UUID) -> None:
    """Record in this tenant who saw the person's first-password link in another one, directly or by the link
    of whoever did: they can sign in as the person here too. What is on record here is not repeated."""
    known = PersonTie.objects.filter(person_id=person_id, kind=TieKind.LINK_SEEN.value)
    holders = people_with_link(person_id, tenant_id) - set(known.values_list("by_id", flat=True))
    at = database_now()
    PersonTie.objects.bulk_create(
        PersonTie(
            id=fresh_id(), tenant_id=tenant_id, kind=TieKind.LINK_SEEN.value, person_id=person_id, by_id=one,
            at=at,
        )
        for one in sorted(holders)
    )  # fmt: skip


def record_key_maker(tenant_id: UUID, principal_id: UUID, *, by: UUID) -> None:
    """Record that the people behind the principal `by` were shown the secret of the key that acts as
    `principal_id`. Who answers for the key anyway is not recorded."""
    at, answering = database_now(), people_behind([principal_id]).get(principal_id, frozenset())
    KeyMaker.objects.bulk_create(
        (
            KeyMaker(id=fresh_id(), tenant_id=tenant_id, principal_id=principal_id, person_id=one, at=at)
            for one in sorted(people_behind([by]).get(by, frozenset()) - answering)
        ),
        ignore_conflicts=True,
    )
