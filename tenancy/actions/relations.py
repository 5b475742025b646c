"""The only writers of why two people are related, and of who knows a key's secret (R-APPR-5). Each joins the
caller's transaction, in the tenant's context, so that the deed and its record are one."""

from uuid import UUID

from tenancy.clock import database_now
from tenancy.core.relations import TieKind
from tenancy.ids import fresh_id
from tenancy.models import KeyMaker, PersonTie
from tenancy.relations import people_behind


def record_tie(tenant_id: UUID, kind: TieKind, person_id: UUID, *, by: UUID) -> None:
    """Record that the people behind the principal `by` did this to a person. Nobody is tied to themself."""
    at = database_now()
    PersonTie.objects.bulk_create(
        PersonTie(id=fresh_id(), tenant_id=tenant_id, kind=kind.value, person_id=person_id, by_id=one, at=at)
        for one in sorted(people_behind([by]).get(by, frozenset()) - {person_id})
    )


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
