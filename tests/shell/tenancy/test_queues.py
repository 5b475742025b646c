"""The queues of a tenant as rows, and what memberships may name (R-SEC-11, R-APPR-5)."""

from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, transaction

from tenancy.actions import add_member, create_tenant
from tenancy.actions.people import Limits, change_limits
from tenancy.actions.queues import add_queue, describe_queue, furnish_queues, hold_queues, set_closed
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.core.queues import STANDING_QUEUES
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, Membership, Queue
from tests.conftest import House
from tests.proves import proves


def faults(error: pytest.ExceptionInfo[InvalidInput]) -> list[tuple[str, str]]:
    """The pointer and code of each fault."""
    return [(fault["pointer"], fault["code"]) for fault in error.value.data["errors"]]


def names(house: House, **more: Any) -> set[str]:
    """The names of the tenant's queues."""
    with tenant_transaction(house.tenant.id):
        return set(Queue.objects.filter(**more).values_list("name", flat=True))


@proves("R-SEC-11", part="a tenant's queues are rows")
def test_a_new_tenant_has_the_standing_queues() -> None:
    made = create_tenant(f"t-{fresh_id().hex}", "New")
    with tenant_transaction(made.id):
        assert dict(Queue.objects.values_list("name", "description")) == STANDING_QUEUES


@proves("R-SEC-11", part="a membership names queues that are there")
def test_a_membership_with_an_unknown_queue_is_refused_with_its_place(house: House) -> None:
    with pytest.raises(InvalidInput) as refused:
        add_member(
            house.tenant.id, house.people.operator.person, Role.REVIEWER, queues=("finance", "tresury")
        )
    assert faults(refused) == [("/queues/1", "unknown-queue")]
    assert "tresury" in refused.value.data["errors"][0]["detail"]
    add_queue(house.tenant.id, "tresury", "", by=None)
    made = add_member(
        house.tenant.id, house.people.operator.person, Role.REVIEWER, queues=("finance", "tresury")
    )
    assert made.queues == ["finance", "tresury"]


@proves("R-SEC-11", part="limits name queues that are there")
def test_limits_with_an_unknown_or_closed_queue_are_refused(house: House) -> None:
    who = house.people.admin.id
    with tenant_transaction(house.tenant.id):
        member = Membership.objects.get(person=house.people.approver.person)
        set_closed(house.tenant.id, Queue.objects.get(name="support"), closed=True, by=who, reason="")
    for name in ("tresury", "support"):
        with pytest.raises(InvalidInput) as refused:
            change_limits(house.tenant.id, member.id, Limits((name,)), by=who, reason="So")
        assert faults(refused) == [("/queues/0", "unknown-queue")]
    assert change_limits(house.tenant.id, member.id, Limits(("finance",)), by=who, reason="So").queues


@proves("R-SEC-11", part="the database refuses a membership with an unknown queue")
@pytest.mark.parametrize("queues", ["{tresury}", "{finance,tresury}", "{support}", '{""}'])
def test_the_database_refuses_a_membership_with_a_queue_that_is_not_open(house: House, queues: str) -> None:
    with tenant_transaction(house.tenant.id):
        set_closed(house.tenant.id, Queue.objects.get(name="support"), closed=True, by=None, reason="")
        with pytest.raises(psycopg.errors.ForeignKeyViolation), transaction.atomic():
            raw_cursor().execute("UPDATE tenancy_membership SET queues = %s", (queues,))
        raw_cursor().execute("UPDATE tenancy_membership SET queues = '{finance}'")


@proves("R-SEC-1", part="queues of another tenant")
def test_a_queue_of_another_tenant_is_none_of_ours(house: House) -> None:
    elsewhere = house.people.other_tenant
    add_queue(elsewhere.id, "theirs", "", by=None)
    assert "theirs" not in names(house)
    with pytest.raises(InvalidInput):
        add_member(house.tenant.id, house.people.operator.person, Role.REVIEWER, queues=("theirs",))


@proves("R-SEC-11", part="a queue that a membership names is not closed")
def test_the_database_closes_no_queue_that_a_membership_names(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        Membership.objects.filter(person=house.people.approver.person).update(queues=["finance"])
        with pytest.raises(IntegrityError, match="names the queue finance"), transaction.atomic():
            set_closed(house.tenant.id, Queue.objects.get(name="finance"), closed=True, by=None, reason="")
    assert "finance" in names(house, closed_at=None)


@proves("R-SEC-11", part="a queue is never deleted or renamed")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM tenancy_queue WHERE tenant_id = %s",
        "UPDATE tenancy_queue SET name = name || 'x' WHERE tenant_id = %s",
        "UPDATE tenancy_queue SET created_by = id WHERE tenant_id = %s",
        "TRUNCATE tenancy_queue CASCADE",
    ],
)
def test_a_queue_is_neither_deleted_nor_renamed_by_any_role(
    house: House, superuser: psycopg.Connection, statement: str
) -> None:
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="a queue stays"):
        superuser.execute(statement, (house.tenant.id,) if "%s" in statement else None)
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege, match="denied")
    with tenant_transaction(house.tenant.id), denied, transaction.atomic():
        raw_cursor().execute(statement, (house.tenant.id,) if "%s" in statement else None)


@pytest.mark.parametrize("name", ["", "*", "Finance", "a b", "1st", "q" * 65, "fin,ops", "käse", "a\n"])
def test_a_queue_whose_name_is_none_is_refused(house: House, name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        add_queue(house.tenant.id, name, "", by=None)
    assert faults(refused) == [("/name", "invalid")]
    if len(name) <= 64:
        with tenant_transaction(house.tenant.id):
            hold_queues(house.tenant.id)
            statement = "INSERT INTO tenancy_queue (id, tenant_id, name, description, created_at)"
            with pytest.raises(psycopg.errors.CheckViolation), transaction.atomic():
                raw_cursor().execute(
                    f"{statement} VALUES (%s, %s, %s, '', now())".encode(),
                    (fresh_id(), house.tenant.id, name),
                )


@proves("R-SEC-6", part="queues are added and described on record")
def test_adding_and_describing_a_queue_is_audited(house: House) -> None:
    who = house.people.admin.id
    add_queue(house.tenant.id, "legal", "Contracts", by=who, reason="New team")
    with pytest.raises(InvalidInput) as taken:
        add_queue(house.tenant.id, "legal", "", by=who)
    assert faults(taken) == [("/name", "taken")]
    describe_queue(house.tenant.id, "legal", "Contracts and claims", by=who, reason="More")
    describe_queue(house.tenant.id, "legal", "Contracts and claims", by=who, reason="The same")
    with pytest.raises(Stale):
        describe_queue(house.tenant.id, "legal", "Other", by=who, expected="Contracts")
    with pytest.raises(NotFound):
        describe_queue(house.tenant.id, "none", "Other", by=who)
    with pytest.raises(InvalidInput) as long:
        describe_queue(house.tenant.id, "legal", "x" * 301, by=who)
    assert faults(long) == [("/description", "not-allowed")]
    with tenant_transaction(house.tenant.id):
        lines = AuditEntry.objects.filter(object="queue:legal").order_by("at")
        assert list(lines.values_list("verb", "principal", "reason")) == [
            ("queue.add", who, "New team"), ("queue.describe", who, "More"),
        ]  # fmt: skip


def test_furnishing_makes_what_is_missing_and_opens_what_is_closed(house: House) -> None:
    with tenant_transaction(house.tenant.id):
        set_closed(house.tenant.id, Queue.objects.get(name="support"), closed=True, by=None, reason="")
        furnish_queues(house.tenant.id, ["support", "security-desk", "finance"], by=None)
    assert {"support", "security-desk", "finance"} <= names(house, closed_at=None)
