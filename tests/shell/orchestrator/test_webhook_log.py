"""What was sent to endpoints goes after the days that a tenant has set, and what still waits never (X7)."""

from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import OperationalError, transaction

from orchestrator.core.notifications.delivery_policy import KEPT_DAYS
from orchestrator.notifications.actions.webhook_delivery import deliver_now
from orchestrator.notifications.actions.webhook_retention import forget_log, forget_logs, keep_log
from orchestrator.notifications.actions.webhooks import NewSecret, add_webhook
from orchestrator.notifications.queries import keeping_now
from tenancy.core.errors import InvalidInput, Stale
from tenancy.core.event_kinds import KINDS
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, WebhookAttempt, WebhookDelivery, WebhookMessage
from tests.conftest import House
from tests.doubles.webhook_receiver import Receiver
from tests.doubles.webhook_receiver import receiver as receiver
from tests.factories.webhooks import connect_hook, half_spent
from tests.proves import proves

DATED = {
    "tenancy_webhookmessage": "at", "tenancy_webhookattempt": "at", "tenancy_webhookdelivery": "done_at",
}  # fmt: skip


@pytest.fixture
def hook(house: House, receiver: Receiver) -> NewSecret:
    """An endpoint to which one alert was delivered."""
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    assert deliver_now(house.tenant.id) == 1
    return made


def age(superuser: psycopg.Connection, house: House, by: timedelta) -> None:
    """As if all of it had happened so much earlier."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        for table, column in DATED.items():
            superuser.execute(
                f"UPDATE {table} SET {column} = clock_timestamp() - %s WHERE tenant_id = %s",
                (by, house.tenant.id),
            )


def left(house: House) -> tuple[int, int, int]:
    """How many messages, deliveries and tries are there."""
    with tenant_transaction(house.tenant.id):
        return WebhookMessage.objects.count(), WebhookDelivery.objects.count(), WebhookAttempt.objects.count()


@proves("X7", part="what was sent to webhooks goes after its days")
def test_what_was_taken_goes_with_its_tries_once_it_is_older_than_it_is_kept(
    house: House, hook: NewSecret, superuser: psycopg.Connection
) -> None:
    age(superuser, house, timedelta(days=KEPT_DAYS) - timedelta(hours=1))
    assert (forget_log(house.tenant.id), left(house)) == (0, (1, 1, 1))
    age(superuser, house, timedelta(days=KEPT_DAYS) + timedelta(hours=1))
    assert (forget_log(house.tenant.id), left(house)) == (1, (0, 0, 0))


@proves("X7", part="what still waits for its endpoint is never removed")
def test_what_waits_stays_with_its_message_whatever_its_age(
    house: House, receiver: Receiver, superuser: psycopg.Connection
) -> None:
    for name in ("books", "more"):
        connect = connect_hook if name == "books" else _another
        connect(house.tenant.id, receiver, name)
    half_spent(house.tenant.id)
    receiver.answer(500)
    assert deliver_now(house.tenant.id) == 2
    with tenant_transaction(house.tenant.id):
        assert sorted(WebhookDelivery.objects.values_list("state", flat=True)) == ["delivered", "waiting"]
    age(superuser, house, timedelta(days=4_000))
    assert (forget_log(house.tenant.id), left(house)) == (1, (1, 1, 1))
    with tenant_transaction(house.tenant.id):
        WebhookDelivery.objects.update(state="failed")
    assert (forget_log(house.tenant.id), left(house)) == (1, (0, 0, 0))


def _another(tenant_id: object, receiver: Receiver, name: str) -> None:
    add_webhook(tenant_id, name=name, url=receiver.url, events=tuple(KINDS), by=None)  # type: ignore[arg-type]


def test_an_administrator_says_for_how_long_and_each_tenant_for_itself(
    house: House, hook: NewSecret, superuser: psycopg.Connection
) -> None:
    age(superuser, house, timedelta(days=8))
    keep_log(house.people.other_tenant.id, 1, expected=0, by=None, reason="Theirs.")
    assert (forget_log(house.tenant.id), forget_log(house.people.other_tenant.id)) == (0, 0)
    by = house.people.admin.id
    assert keep_log(house.tenant.id, 7, expected=0, by=by, reason="A week will do.").version == 1
    assert keep_log(house.tenant.id, 7, expected=1, by=by, reason="Again.").version == 1
    with pytest.raises(Stale):
        keep_log(house.tenant.id, 9, expected=0, by=by, reason="Late.")
    assert forget_log(house.tenant.id) == 1
    with tenant_transaction(house.tenant.id):
        said = AuditEntry.objects.get(verb="webhook.keep")
        assert (said.principal, said.before, said.after) == (by, {"days": KEPT_DAYS}, {"days": 7})
        assert keeping_now().reason == "A week will do."


@pytest.mark.parametrize(("days", "reason"), [(0, "Why"), (3_651, "Why"), (30, "  ")])
def test_a_log_is_kept_for_some_days_and_for_a_reason(house: House, days: int, reason: str) -> None:
    with pytest.raises(InvalidInput):
        keep_log(house.tenant.id, days, expected=None, by=None, reason=reason)


def test_the_clock_goes_through_every_house_batch_by_batch(
    house: House, hook: NewSecret, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.notifications.actions.webhook_retention.A_BATCH", 1)
    with tenant_transaction(house.tenant.id):
        (one,) = WebhookDelivery.objects.all()
        other = WebhookMessage.objects.create(
            tenant_id=house.tenant.id, kind="webhook.test", subject="test:2", body=b"{}", at=one.created_at
        )
        WebhookDelivery.objects.create(
            tenant_id=house.tenant.id, webhook=one.webhook, message=other, state="failed",
            next_at=one.next_at, done_at=one.done_at, created_at=one.created_at,
        )  # fmt: skip
    age(superuser, house, timedelta(days=100))
    assert forget_log(house.tenant.id) == 1
    assert (forget_logs() >= 1, left(house)) == (True, (0, 0, 0))


def test_a_house_whose_log_cannot_be_cleared_holds_up_no_other(
    house: House, hook: NewSecret, superuser: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(superuser, house, timedelta(days=100))
    other = house.people.other_tenant.id
    monkeypatch.setattr(
        "orchestrator.notifications.actions.webhook_retention.all_tenants", lambda: [other, house.tenant.id]
    )

    def one_fails(tenant_id: UUID) -> int:
        if tenant_id == other:
            raise OperationalError
        return forget_log(tenant_id)

    monkeypatch.setattr("orchestrator.notifications.actions.webhook_retention.forget_log", one_fails)
    assert (forget_logs(), left(house)) == (1, (0, 0, 0))


@proves("X7", part="nobody removes by hand what was sent")
@pytest.mark.parametrize("table", ["tenancy_webhookmessage", "tenancy_webhookattempt"])
def test_what_was_sent_is_neither_changed_nor_removed_by_hand(
    house: House, hook: NewSecret, superuser: psycopg.Connection, table: str
) -> None:
    age(superuser, house, timedelta(hours=1))
    for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET at = now()"):
        denied = pytest.raises(psycopg.errors.InsufficientPrivilege)
        with tenant_transaction(house.tenant.id), denied, transaction.atomic():
            raw_cursor().execute(statement)
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="by the days"):
            superuser.execute(f"{statement} WHERE tenant_id = %s", (house.tenant.id,))
        refused = pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="by the days")
        with refused, superuser.transaction():
            superuser.execute("SET LOCAL ROLE interlock_owner")
            superuser.execute("SELECT set_config('interlock.tenant', %s, true)", (str(house.tenant.id),))
            superuser.execute(statement)
