"""A review item whose holder is gone does not stay theirs for ever (R-TOOL-19)."""

import pytest

from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Person
from tests.doors.api.doors import some_review
from tests.doors.api.program import program, refusal
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.tenancy import make_somebody
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def item(world: World) -> str:
    """An item of a run that waits."""
    return str(some_review(world.id, world.submit("tool-loop", "How much is 1 + 1?")))


@proves("R-TOOL-19", part="review queue, of a holder who left")
def test_whoever_may_decide_releases_it_once_its_holder_may_not(world: World, item: str) -> None:
    holder, other = (make_somebody(world.house.tenant, Role.REVIEWER) for _ in range(2))
    where, button = f"/reviews/{item}", "Release it"
    assert at(holder).post(where, {"do": "take"}).status_code == 302
    assert button not in text(at(other).get(where))
    assert at(other).post(where, {"do": "release"}).status_code == 409
    Person.objects.filter(id=holder.person.id).update(is_active=False)
    assert button in text(at(other).get(where))
    assert at(other).post(where, {"do": "release"}).status_code == 302
    assert at(other).post(where, {"do": "take"}).status_code == 302
    with tenant_transaction(world.id):
        entry = AuditEntry.objects.get(verb="review.released")
    assert entry.before == {"state": "taken", "holder": str(holder.principal.id)}
    assert entry.principal == other.principal.id


@proves("R-TOOL-19", part="review queue, an administrator's release")
def test_an_administrator_releases_what_another_has_taken(world: World, item: str) -> None:
    holder, admin, other = (program(world.id, role) for role in (Role.REVIEWER, Role.ADMIN, Role.REVIEWER))
    assert refusal(admin.post(f"/reviews/{item}/release", {})) == (409, "review-refused")
    holder.post(f"/reviews/{item}/take", {})
    assert refusal(other.post(f"/reviews/{item}/release", {})) == (409, "review-refused")
    answer = {"finding": "confirmed", "note": "It is so."}
    assert refusal(admin.post(f"/reviews/{item}/answer", answer)) == (409, "review-refused")
    assert admin.post(f"/reviews/{item}/release", {}).json()["state"] == "waiting"
