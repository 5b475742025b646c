"""Who is related to whom, as the tables keep it: written with the deed, never changed, of one tenant."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from tenancy.actions import add_member, add_person, create_key, principal_of
from tenancy.actions.confirmation import NotSignedIn, confirm_person
from tenancy.actions.people import Limits, change_limits, invite_member, show_link
from tenancy.actions.relations import record_tie
from tenancy.core.relations import TieKind
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import KeyMaker, PersonTie
from tenancy.people.relations import are_related, people_behind, related_people
from tests.conftest import House
from tests.factories.tenancy import make_somebody
from tests.proves import proves


@proves("R-APPR-5", part="a role given relates two people")
def test_a_role_given_relates_giver_and_receiver_in_both_directions(house: House) -> None:
    cast = house.people
    add_member(house.tenant.id, cast.operator.person, Role.REVIEWER, by=cast.admin.id)
    add_member(house.tenant.id, cast.auditor.person, Role.REVIEWER, by=cast.operator.id)
    admin, operator, auditor = (who.person.id for who in (cast.admin, cast.operator, cast.auditor))
    with tenant_transaction(house.tenant.id):
        assert are_related(admin, operator)
        assert are_related(operator, admin)
        assert are_related(admin, auditor)
        assert are_related(auditor, admin)
        assert related_people(operator) == {admin, operator, auditor}
        assert not are_related(cast.approver.person.id, admin)
        assert are_related(admin, admin)


def test_a_role_given_is_forgotten_after_a_day(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    admin, friend = house.people.admin, house.people.operator.person
    add_member(house.tenant.id, friend, Role.REVIEWER, by=admin.id)
    tomorrow = database_now() + timedelta(hours=24)
    monkeypatch.setattr("tenancy.people.relations.database_now", lambda: tomorrow)
    with tenant_transaction(house.tenant.id):
        assert not are_related(friend.id, admin.person.id)


@proves("A8", part="a seen link until somebody unrelated confirms")
def test_a_seen_link_relates_until_a_confirmation_also_after_a_day(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast, house_id = house.people, house.tenant.id
    seen, other = cast.operator.person.id, make_somebody(house.tenant, Role.ADMIN)
    with tenant_transaction(house_id):
        record_tie(house_id, TieKind.LINK_SEEN, seen, by=cast.admin.id)
    later = database_now() + timedelta(days=30)
    with tenant_transaction(house_id), monkeypatch.context() as patch:
        patch.setattr("tenancy.people.relations.database_now", lambda: later)
        assert are_related(seen, cast.admin.person.id)
    with tenant_transaction(house_id):
        record_tie(house_id, TieKind.CONFIRMED, seen, by=cast.admin.id)
        assert are_related(seen, cast.admin.person.id)
        record_tie(house_id, TieKind.CONFIRMED, seen, by=other.id)
        assert not are_related(seen, cast.admin.person.id)


def test_a_role_of_long_ago_still_decides_whether_a_confirmation_counted(house: House) -> None:
    cast, house_id, now = house.people, house.tenant.id, database_now()
    giver, person, friend = (who.person.id for who in (cast.admin, cast.operator, cast.auditor))
    said = [
        (TieKind.ROLE_GIVEN, friend, giver, 80), (TieKind.LINK_SEEN, person, giver, 75),
        (TieKind.CONFIRMED, person, friend, 70),
    ]  # fmt: skip
    with tenant_transaction(house_id):
        PersonTie.objects.bulk_create(
            PersonTie(
                tenant_id=house_id, kind=kind.value, person_id=whose, by_id=by, at=now - timedelta(hours=ago)
            )
            for kind, whose, by, ago in said
        )
        assert are_related(person, giver)


def test_the_seed_and_commands_relate_nobody(house: House) -> None:
    add_member(house.tenant.id, house.people.auditor.person, Role.REVIEWER)
    create_key(house.tenant.id, Role.CLIENT)
    with tenant_transaction(house.tenant.id):
        assert not PersonTie.objects.exists()
        assert not KeyMaker.objects.exists()


def test_a_person_who_gives_themself_a_role_is_tied_to_nobody(house: House) -> None:
    admin = house.people.admin
    add_member(house.tenant.id, admin.person, Role.REVIEWER, by=admin.id)
    with tenant_transaction(house.tenant.id):
        assert related_people(admin.person.id) == {admin.person.id}


@proves("R-APPR-5", part="the maker stands behind a key")
def test_whoever_makes_a_key_stands_behind_it_whoever_answers_for_it(house: House) -> None:
    cast, house_id = house.people, house.tenant.id
    admin, other = cast.admin.person.id, cast.operator.person
    fresh = create_key(house_id, Role.CLIENT, by=cast.admin.id).key.principal
    others = create_key(house_id, Role.CLIENT, owner=other, by=cast.admin.id).key.principal
    own = create_key(house_id, Role.ADMIN, owner=cast.admin.person, by=cast.admin.id).key.principal
    made_with_it = create_key(house_id, Role.CLIENT, by=others.id).key.principal
    with tenant_transaction(house_id):
        behind = people_behind([fresh.id, others.id, own.id, made_with_it.id, fresh_id()])
        assert behind == {
            fresh.id: {fresh.owner_id, admin}, others.id: {other.id, admin}, own.id: {admin},
            made_with_it.id: {made_with_it.owner_id, admin, other.id},
        }  # fmt: skip


def test_a_role_given_by_a_key_ties_everybody_who_stands_behind_it(house: House) -> None:
    cast, house_id = house.people, house.tenant.id
    second = make_somebody(house.tenant, Role.ADMIN)
    key = create_key(house_id, Role.ADMIN, owner=second.person, by=cast.admin.id).key.principal
    new = add_person(f"{fresh_id().hex}@people.example", "the new one")
    add_member(house_id, new, Role.REVIEWER, by=key.id)
    with tenant_transaction(house_id):
        assert related_people(new.id) == {new.id, second.person.id, cast.admin.person.id}


def test_relations_of_one_tenant_are_none_of_another(house: House) -> None:
    cast = house.people
    add_member(house.tenant.id, cast.operator.person, Role.REVIEWER, by=cast.admin.id)
    with tenant_transaction(cast.other_tenant.id):
        assert not are_related(cast.operator.person.id, cast.admin.person.id)
        assert not PersonTie.objects.exists()


@pytest.mark.parametrize("wrong", ["own", "kind"])
def test_the_table_takes_no_tie_to_oneself_and_no_unknown_kind(house: House, wrong: str) -> None:
    cast = house.people
    person = cast.admin.person if wrong == "own" else cast.operator.person
    kind = "role_given" if wrong == "own" else "friend"
    with (
        tenant_transaction(house.tenant.id),
        pytest.raises(IntegrityError, match="person_tie_"),
        transaction.atomic(),
    ):
        PersonTie.objects.create(
            tenant_id=house.tenant.id, kind=kind, person=person, by=cast.admin.person, at=database_now()
        )


@proves("A8", part="wider limits relate like a role")
def test_wider_limits_relate_giver_and_receiver_and_narrower_ones_do_not(house: House) -> None:
    """Else a role without a queue would be given first, and its queues a day later."""
    cast, house_id = house.people, house.tenant.id
    admin, steps = cast.admin.id, (("*",), ("finance",), (), ("finance",))
    related = []
    member = add_member(house_id, cast.operator.person, Role.REVIEWER, queues=("*",))
    for queues in steps:
        change_limits(house_id, member.id, Limits(queues), by=admin, reason="So")
        with tenant_transaction(house_id):
            related.append(are_related(cast.operator.person.id, cast.admin.person.id))
    assert related == [False, False, False, True]


def test_limits_that_mean_nothing_and_a_commands_relate_nobody(house: House) -> None:
    cast, house_id = house.people, house.tenant.id
    idle = add_member(house_id, cast.approver.person, Role.CLIENT, queues=())
    change_limits(house_id, idle.id, Limits(("*",)), by=cast.admin.id, reason="So")
    meant = add_member(house_id, cast.operator.person, Role.REVIEWER, queues=())
    change_limits(house_id, meant.id, Limits(("*",)), by=None, reason="So")
    with tenant_transaction(house_id):
        assert not PersonTie.objects.exists()


@proves("A8", part="a link seen in another tenant")
def test_a_link_seen_in_another_tenant_relates_here_too_also_through_a_puppet(house: House) -> None:
    """Whoever administers two tenants would else invite there, see the link, and be two people here."""
    cast, elsewhere = house.people, house.people.other_tenant
    add_member(elsewhere.id, cast.admin.person, Role.ADMIN)
    with tenant_transaction(elsewhere.id):
        admin = principal_of(elsewhere.id, cast.admin.person)
    first = invite_member(
        elsewhere.id, f"one-{elsewhere.id.hex}@people.example", "One", Role.ADMIN, Limits(), by=admin.id
    )
    show_link(elsewhere.id, first.person, by=admin.id)
    with tenant_transaction(elsewhere.id):
        puppet = principal_of(elsewhere.id, first.person)
    address = f"two-{elsewhere.id.hex}@people.example"
    second = invite_member(elsewhere.id, address, "Two", Role.REVIEWER, Limits(), by=puppet.id).person
    show_link(elsewhere.id, second, by=puppet.id)
    stranger = make_somebody(house.tenant, Role.ADMIN)
    invite_member(house.tenant.id, address, "Two", Role.REVIEWER, Limits(("*",)), by=stranger.id)
    with tenant_transaction(house.tenant.id):
        assert are_related(second.id, cast.admin.person.id)
        links = PersonTie.objects.filter(kind=TieKind.LINK_SEEN.value, person=second)
        assert set(links.values_list("by", flat=True)) == {cast.admin.person.id, first.person.id}
    # What is on record is not written again: a confirmation would end with each further role.
    invite_member(house.tenant.id, address, "Two", Role.CLIENT, Limits(), by=stranger.id)
    with tenant_transaction(house.tenant.id):
        assert PersonTie.objects.filter(kind=TieKind.LINK_SEEN.value, person=second).count() == 2


@proves("A8", part="no confirmation while a seen link opens the account")
def test_finding_1_nobody_is_confirmed_before_they_set_a_password_though_they_belong_elsewhere_too(
    house: House,
) -> None:
    """Whoever saw the link would else set the password after the confirmation."""
    admin, house_id = house.people.admin, house.tenant.id
    other = make_somebody(house.tenant, Role.ADMIN)
    address = f"new-{house_id.hex}@people.example"
    person = invite_member(house_id, address, "New", Role.REVIEWER, Limits(("*",)), by=admin.id).person
    show_link(house_id, person, by=admin.id)
    add_member(house.people.other_tenant.id, person, Role.CLIENT)
    with pytest.raises(NotSignedIn):
        confirm_person(house_id, person.id, by=other.id, reason="They say so.")
    person.set_password("correct horse battery staple")
    person.save(update_fields=["password"])
    confirm_person(house_id, person.id, by=other.id, reason="They say so.")
    with tenant_transaction(house_id):
        assert not are_related(person.id, other.person.id)
