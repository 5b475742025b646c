"""The quick ways of the factories leave the rows that the verbs leave."""

from typing import Any
from uuid import UUID

from orchestrator.publishing.actions.seed import seed_tenant
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership, Principal
from tests.conftest import House
from tests.factories.furniture import CATALOGUE, furnish_like_the_verb
from tests.factories.tenancy import make_somebody, make_staff, make_tenant

OWN = {"id", "tenant_id", "owner_id", "person_id", "created_at", "published_at", "at", "object", "after"}


def rows(tenant_id: UUID, *tables: type[Any]) -> list[list[dict[str, Any]]]:
    """The tenant's rows of each table without what is each row's own."""
    with tenant_transaction(tenant_id):
        found = [list(table._default_manager.values()) for table in tables]
    left = [[{name: row[name] for name in row.keys() - OWN} for row in some] for some in found]
    return [sorted(some, key=lambda row: repr(sorted(row.items()))) for some in left]


def test_a_world_holds_what_the_verb_publishes(house: House) -> None:
    one, other = make_tenant(), make_tenant()
    seed_tenant(one.id)
    furnish_like_the_verb(other.id)
    assert rows(one.id, *CATALOGUE) == rows(other.id, *CATALOGUE)
    seed_tenant(other.id)
    assert rows(one.id, *CATALOGUE) == rows(other.id, *CATALOGUE)


def test_the_cast_is_what_the_verbs_make(house: House) -> None:
    one, other = make_tenant(), make_tenant()
    by_verbs = [make_somebody(one, role) for role in (Role.REVIEWER, Role.ADMIN)]
    at_once = make_staff(other, Role.REVIEWER, Role.ADMIN)
    tables = (Principal, Membership)
    assert rows(one.id, *tables) == rows(other.id, *tables)
    for each in (one, other):
        audited = [line["verb"] for line in rows(each.id, AuditEntry)[0]]
        assert audited == ["member.add", "member.add", "tenant.create"]
    for somebody in (*by_verbs, *at_once):
        assert somebody.principal.owner == somebody.person
        assert not somebody.person.has_usable_password()
