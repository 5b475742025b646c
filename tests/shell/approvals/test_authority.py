"""Whose word counts, as the database has it at the moment of the decision."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError

from approvals.core.errors import NotYours, RequestNotFound
from approvals.core.policy import Rule
from approvals.queries.assignment import who_may
from tenancy.actions import add_member, create_key, remove_member, revoke_key
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership
from tests.factories.approvals import ASKED, Desk
from tests.factories.tenancy import Somebody, make_somebody
from tests.proves import proves


def limited(desk: Desk, **limits: object) -> Somebody:
    """A reviewer with limits."""
    who = make_somebody(desk.house.tenant, Role.REVIEWER)
    with tenant_transaction(desk.id):
        Membership.objects.filter(person=who.person).update(**limits)
    return who


def refused(desk: Desk, who: Somebody, **more: object) -> str:
    """The rule by which a word on a refund of 150 is refused."""
    request = desk.ask(**more)  # type: ignore[arg-type]
    with pytest.raises(NotYours) as why:
        desk.say(request, who)
    assert desk.again(request).status == "pending"
    assert desk.said(request) == []
    return str(why.value.data["rule"])


@proves("A8")
def test_nobody_decides_on_their_own_run(desk: Desk) -> None:
    admin = desk.house.people.admin
    assert refused(desk, admin, submitter=admin) == Rule.OWN_RUN


@proves("A8", part="by key")
def test_nor_by_a_key_of_theirs(desk: Desk) -> None:
    admin = desk.house.people.admin
    key = create_key(desk.id, Role.REVIEWER, owner=admin.person)
    request = desk.ask(submitter=admin)
    with pytest.raises(NotYours, match="own run"):
        desk.say(request, key.key.principal_id)


@proves("R-APPR-5", part="role")
@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_roles_that_do_not_decide_are_refused(desk: Desk, role: str) -> None:
    assert refused(desk, getattr(desk.house.people, role)) == Rule.SCOPE


@proves("R-APPR-5", part="reviewer's limits")
@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"queues": ["operations"]}, Rule.QUEUE),
        ({"queues": []}, Rule.QUEUE),
        ({"max_risk": "network"}, Rule.RISK),
        ({"max_amount": Decimal(149)}, Rule.AMOUNT),
    ],
)
def test_a_reviewer_s_limits_hold(desk: Desk, limits: dict[str, object], rule: Rule) -> None:
    assert refused(desk, limited(desk, **limits)) == rule


@proves("R-APPR-23", part="a membership without a queue decides in none, and * in every one")
def test_a_membership_without_a_queue_decides_nothing_and_one_of_every_queue_all(desk: Desk) -> None:
    nowhere, anywhere = (limited(desk, queues=queues) for queues in ([], ["*"]))
    request = desk.ask()
    with pytest.raises(NotYours, match="the queue finance is not among yours"):
        desk.say(request, nowhere)
    with tenant_transaction(desk.id):
        able = {principal for principal, _ in who_may(request)}
    assert nowhere.id not in able
    assert anywhere.id in able
    assert desk.say(request, anywhere).outcome == "approve"


@proves("R-APPR-23", part="the database knows what every queue is")
def test_every_queue_beside_a_name_is_refused_by_the_database(desk: Desk) -> None:
    with pytest.raises(IntegrityError):
        limited(desk, queues=["finance", "*"])


def test_within_the_limits_a_reviewer_decides(desk: Desk) -> None:
    who = limited(desk, queues=["finance"], max_risk="destructive", max_amount=Decimal(150))
    assert desk.say(desk.ask(), who).outcome == "approve"


@proves("R-APPR-5", part="an edit's amount")
def test_nobody_edits_their_way_past_their_limit(desk: Desk) -> None:
    who, request = limited(desk, max_amount=Decimal(150)), desk.ask()
    with pytest.raises(NotYours, match="your limit is 150"):
        desk.say(request, who, "edit", arguments={**ASKED, "amount": "151.00"})
    assert desk.said(request) == []
    assert desk.say(request, who, "edit", arguments={**ASKED, "amount": "149.00"}).outcome == "edit"


@proves("A13")
def test_a_role_that_was_taken_away_meanwhile_counts_no_more(desk: Desk) -> None:
    request, who = desk.ask(), make_somebody(desk.house.tenant, Role.REVIEWER)
    remove_member(desk.id, who.person, Role.REVIEWER)
    with pytest.raises(RequestNotFound):
        desk.say(request, who)
    add_member(desk.id, who.person, Role.OPERATOR)
    with pytest.raises(NotYours):
        desk.say(request, who)


@proves("A13", part="by key")
def test_nor_does_it_live_on_in_a_key(desk: Desk) -> None:
    request, who = desk.ask(), make_somebody(desk.house.tenant, Role.REVIEWER)
    key = create_key(desk.id, Role.REVIEWER, owner=who.person)
    remove_member(desk.id, who.person, Role.REVIEWER)
    with pytest.raises(NotYours, match="scope"):
        desk.say(request, key.key.principal_id)


@proves("R-SEC-2", part="a key's reach")
def test_a_key_reaches_no_further_than_who_answers_for_it(desk: Desk) -> None:
    who = limited(desk, max_amount=Decimal(100))
    key = create_key(desk.id, Role.REVIEWER, owner=who.person)
    with pytest.raises(NotYours, match="your limit is 100"):
        desk.say(desk.ask(), key.key.principal_id)


def test_a_key_that_answers_for_itself_decides_by_its_scopes(desk: Desk) -> None:
    deciding, submitting = create_key(desk.id, Role.REVIEWER), create_key(desk.id, Role.CLIENT)
    request = desk.ask()
    with pytest.raises(NotYours):
        desk.say(request, submitting.key.principal_id)
    assert desk.say(request, deciding.key.principal_id).outcome == "approve"


@proves("Z6", part="decisions")
def test_a_revoked_or_expired_key_has_no_word(desk: Desk) -> None:
    revoked = create_key(desk.id, Role.REVIEWER)
    revoke_key(desk.id, revoked.key.id)
    expired = create_key(desk.id, Role.REVIEWER, expires_in=timedelta(seconds=-1))
    for key in (revoked, expired):
        with pytest.raises(RequestNotFound):
            desk.say(desk.ask(), key.key.principal_id)
