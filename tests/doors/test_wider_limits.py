"""An administrator whose own word is limited lets nobody decide more than themselves (A8, R-APPR-5)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tenancy.actions import add_member, create_key
from tenancy.actions.people import Limits, WiderThanYours, change_limits, invite_member
from tenancy.core.roles import EVERY_QUEUE, Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry, Membership
from tenancy.people.dual_control import DECIDED_ALONE
from tests.conftest import House
from tests.doors.api.program import Program
from tests.doors.pages.browsers import browser
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves

FIFTY, MORE = Decimal(50), Decimal(5_000)


def narrow_admin(house: House) -> Somebody:
    """An administrator whose word reaches up to 50 in the queue finance, beside one without limits."""
    who = make_somebody(house.tenant, Role.AUDITOR)
    add_member(house.tenant.id, who.person, Role.ADMIN, queues=("finance",), max_amount=FIFTY)
    return who


def reviewer(house: House) -> Membership:
    """Somebody who decides up to 50."""
    person = make_somebody(house.tenant, Role.CLIENT).person
    return add_member(house.tenant.id, person, Role.REVIEWER, queues=("finance",), max_amount=FIFTY)


def program(house: House, who: Somebody) -> Program:
    """A program of theirs."""
    return Program(clear=create_key(house.tenant.id, Role.ADMIN, owner=who.person).clear)


def by_invitation(house: House, who: Somebody, limits: dict[str, Any]) -> Any:
    body = {"email": f"new-{who.id.hex}@people.example", "name": "New", "role": "reviewer", "reason": "So."}
    return program(house, who).post("/members", {**body, **limits})


def by_invitation_page(house: House, who: Somebody, limits: dict[str, Any]) -> Any:
    form = {"email": f"new-{who.id.hex}@people.example", "name": "New", "role": "admin"}
    given = {"queues": ", ".join(limits["queues"]), "max_amount": limits["max_amount"] or ""}
    return browser(who).post("/tenant/people/invite", {**form, **given})


def by_further_role(house: House, who: Somebody, limits: dict[str, Any]) -> Any:
    person = make_somebody(house.tenant, Role.CLIENT).person
    body = {"role": "reviewer", "reason": "So.", **limits}
    return program(house, who).post(f"/members/{person.id}/roles", body)


def by_limits(house: House, who: Somebody, limits: dict[str, Any]) -> Any:
    path = f"/members/{reviewer(house).person_id}/roles/reviewer"
    return program(house, who).send("put", path, {"reason": "So.", **limits})


def by_limits_page(house: House, who: Somebody, limits: dict[str, Any]) -> Any:
    given = {"queues": ", ".join(limits["queues"]), "max_amount": limits["max_amount"] or "", "reason": "So."}
    return browser(who).post(f"/tenant/members/{reviewer(house).id}/limits", given)


DOORS: dict[str, Callable[[House, Somebody, dict[str, Any]], Any]] = {
    "invitation": by_invitation, "invitation page": by_invitation_page, "further role": by_further_role,
    "limits": by_limits, "limits page": by_limits_page,
}  # fmt: skip
WIDER: dict[str, dict[str, Any]] = {
    "no limit": {"queues": ["finance"], "max_amount": None},
    "more": {"queues": ["finance"], "max_amount": "5000"},
    "every queue": {"queues": ["*"], "max_amount": "50"},
    "another queue": {"queues": ["finance", "support"], "max_amount": "50"},
}


@proves("R-APPR-5", part="nobody gives more authority than they hold")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("limits", WIDER.values(), ids=WIDER)
def test_finding_2_limited_administrator_gives_no_more_than_they_hold(
    house: House, door: str, limits: dict[str, Any]
) -> None:
    answer = DOORS[door](house, narrow_admin(house), limits)
    assert answer.status_code == 403, (door, limits, answer.content)


@pytest.mark.parametrize("door", DOORS)
def test_finding_2_limited_administrator_gives_what_they_hold(house: House, door: str) -> None:
    answer = DOORS[door](house, narrow_admin(house), {"queues": ["finance"], "max_amount": "50"})
    assert answer.status_code in (200, 201, 302), (door, answer.content)


def test_finding_2_limited_administrator_narrows_whoever_decides_more(house: House) -> None:
    house_id, who = house.tenant.id, narrow_admin(house)
    person = make_somebody(house.tenant, Role.CLIENT).person
    wide = add_member(house_id, person, Role.REVIEWER, queues=EVERY_QUEUE)
    change_limits(house_id, wide.id, Limits(EVERY_QUEUE, MORE), by=who.id, reason="Less.")
    # A role that decides nothing reaches nowhere, and neither does a membership without a queue.
    for role, limits in ((Role.OPERATOR, Limits(EVERY_QUEUE)), (Role.ADMIN, Limits())):
        invite_member(house_id, f"{role.value}-{who.id.hex}@people.example", "New", role, limits, by=who.id)
    with pytest.raises(WiderThanYours):
        change_limits(house_id, wide.id, Limits(EVERY_QUEUE), by=who.id, reason="More.")


def test_finding_2_only_administrator_gives_more_on_record_and_the_operator_at_will(
    house: House,
) -> None:
    house_id, admin = house.tenant.id, house.people.admin
    with tenant_transaction(house_id):
        Membership.objects.filter(person=admin.person).update(max_amount=FIFTY)
    member = reviewer(house)
    change_limits(house_id, member.id, Limits(("finance",)), by=admin.id, reason="We grow.")
    with tenant_transaction(house_id):
        line = AuditEntry.objects.get(verb=DECIDED_ALONE)
    assert (line.principal, line.reason) == (admin.id, "We grow.")
    narrow_admin(house)
    change_limits(house_id, member.id, Limits(EVERY_QUEUE), by=None, reason="So.")
