"""Seeding the people of the demonstration. Idempotent."""

from django.contrib.auth.hashers import make_password

from tenancy.actions import add_member, add_person, create_tenant
from tenancy.core.demo_users import CAST, HOUSES, PASSWORD
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Person, Tenant
from tenancy.queries import tenant_by_slug


def seed_people() -> list[Tenant]:
    """Both tenants with their people; what is there already stays as it is."""
    # Hashing is slow by design, and the password is one and published: once for all sixteen.
    hashed = make_password(PASSWORD)
    return [_seed_tenant(slug, name, hashed) for slug, name in HOUSES]


def _seed_tenant(slug: str, name: str, hashed: str) -> Tenant:
    house = tenant_by_slug(slug) or create_tenant(slug, name)
    for title, role, queues in CAST:
        email = f"{title}@{slug}.example"
        person = Person.objects.filter(email=email).first() or add_person(
            email, f"{name} {title.replace('-', ' ')}", hashed=hashed
        )
        with tenant_transaction(house.id):
            known = Membership.objects.filter(person=person, role=role.value).exists()
        if not known:
            add_member(house.id, person, role, queues=queues)
    return house
