"""A grant: for one exact action, once, for a while (R-APPR-4, R-APPR-14)."""

import pytest

from approvals.actions import ConsumedGrant, UnusableGrant, consume_grant
from approvals.models import GrantUse
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.factories.approvals import ASKED, Desk, action_of
from tests.factories.tenancy import make_tenant
from tests.proves import proves


@proves("R-APPR-4", part="single use")
def test_a_grant_is_used_once(desk: Desk) -> None:
    request = desk.say(desk.ask(), desk.house.people.approver)
    assert desk.use(request) == ConsumedGrant()
    assert desk.use(request, effect="f" * 32) == UnusableGrant("already_used")


@proves("A1")
@proves("R-APPR-4", part="the exact action")
def test_any_other_action_is_not_granted(desk: Desk) -> None:
    request = desk.say(desk.ask(), desk.house.people.approver)
    assert desk.use(request, action=action_of({**ASKED, "amount": "150.01"})) == UnusableGrant(
        "another_action"
    )
    assert desk.use(request) == ConsumedGrant()


@proves("R-APPR-4", part="expiry")
def test_a_grant_has_its_time(desk: Desk) -> None:
    request = desk.say(desk.ask(grant_seconds=60), desk.house.people.approver)
    assert desk.use(request, late=61) == UnusableGrant("expired")
    assert desk.use(request, late=50) == ConsumedGrant()


@proves("R-APPR-4", part="nothing granted")
@pytest.mark.parametrize("ended", ["pending", "rejected", "reconciled"])
def test_without_a_yes_there_is_no_grant(desk: Desk, ended: str) -> None:
    request = desk.ask(kind="reconciliation" if ended == "reconciled" else "action")
    if ended != "pending":
        desk.say(request, desk.house.people.approver, "reject" if ended == "rejected" else "happened")
    assert desk.use(request) == UnusableGrant("not_granted")
    assert desk.use(request, action="") == UnusableGrant("not_granted")


@proves("R-APPR-14", part="used with its intent")
def test_a_use_that_is_rolled_back_leaves_the_grant_as_it_was(desk: Desk) -> None:
    request = desk.say(desk.ask(), desk.house.people.approver)

    def use_and_fail() -> None:
        with tenant_transaction(desk.id):
            values = {"effect_id": "e" * 32, "action_digest": action_of(ASKED), "at": database_now()}
            assert consume_grant(desk.id, request.id, cursor=raw_cursor(), **values) == ConsumedGrant()  # type: ignore[arg-type]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        use_and_fail()
    assert desk.use(request) == ConsumedGrant()


@proves("Z4", part="grants")
def test_another_tenant_cannot_use_it(desk: Desk, house: House) -> None:
    request = desk.say(desk.ask(), desk.house.people.approver)
    other = make_tenant()
    with tenant_transaction(other.id):
        values = {"effect_id": "e" * 32, "action_digest": action_of(ASKED), "at": database_now()}
        found = consume_grant(house.tenant.id, request.id, cursor=raw_cursor(), **values)  # type: ignore[arg-type]
        assert found == UnusableGrant("not_granted")
    assert desk.use(request) == ConsumedGrant()


def test_the_use_says_which_effect_it_was(desk: Desk) -> None:
    request = desk.say(desk.ask(), desk.house.people.approver)
    desk.use(request, effect="d" * 32)
    with tenant_transaction(desk.id):
        use = GrantUse.objects.get(id=request.id)
    assert (use.effect_id, use.action_digest) == ("d" * 32, request.action_digest)
