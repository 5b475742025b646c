"""The people of the demonstration: two tenants, every role in each. Idempotent."""

from django.contrib.auth.hashers import make_password

from tenancy.actions import add_member, add_person, create_tenant
from tenancy.context import tenant
from tenancy.core.roles import Role
from tenancy.models import Membership, Person, Tenant
from tenancy.queries import tenant_by_slug

PASSWORD = "interlock-demo"  # noqa: S105 - printed at start-up, for a demonstration on loopback
CAST: tuple[tuple[str, Role, tuple[str, ...]], ...] = (
    ("operator", Role.OPERATOR, ()),
    ("reviewer", Role.REVIEWER, ()),
    ("second-reviewer", Role.REVIEWER, ()),
    ("finance", Role.REVIEWER, ("finance",)),
    ("second-finance", Role.REVIEWER, ("finance",)),
    ("admin", Role.ADMIN, ()),
    ("auditor", Role.AUDITOR, ()),
    ("client", Role.CLIENT, ()),
)
HOUSES = (("demo", "Demo"), ("harbor", "Harbor"))


def seed_people() -> list[Tenant]:
    """Both tenants with their people; what is there already stays as it is."""
    # Hashing is slow by design, and the password is one and published: once for all sixteen.
    hashed = make_password(PASSWORD)
    return [_furnish(slug, name, hashed) for slug, name in HOUSES]


def _furnish(slug: str, name: str, hashed: str) -> Tenant:
    house = tenant_by_slug(slug) or create_tenant(slug, name)
    for title, role, queues in CAST:
        email = f"{title}@{slug}.example"
        person = Person.objects.filter(email=email).first() or add_person(
            email, f"{name} {title.replace('-', ' ')}", hashed=hashed
        )
        with tenant(house.id):
            known = Membership.objects.filter(person=person, role=role.value).exists()
        if not known:
            add_member(house.id, person, role, queues=queues)
    return house
