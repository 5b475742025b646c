"""Endpoints are told of alerts: signed, once recorded, at least once delivered, and never at a private
address that no admin has named (R-API-6, R-BUDGET-10, W3).
"""

import socket
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from pytest_django.fixtures import Settings
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from orchestrator import bundled_content
from orchestrator.core.common.errors import EgressRefused, NameTaken
from orchestrator.core.notifications.delivery_policy import OVERLAP, TRIES
from orchestrator.core.notifications.errors import WebhookOff
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.notifications.actions.webhook_delivery import claim_of, deliver_due, deliver_now, note_try
from orchestrator.notifications.actions.webhook_disabled_mail import tell_off
from orchestrator.notifications.actions.webhooks import (
    add_webhook,
    remove_webhook,
    replay_delivery,
    rotate_secret,
    try_webhook,
    turn_on,
)
from orchestrator.notifications.gateways.webhook_sender import AttemptResult, OutgoingMessage, send_webhook
from orchestrator.publishing.actions.versions import publish_boundary
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.core.errors import InvalidInput, NotFound, SecretUnusable
from tenancy.core.event_kinds import BUDGET_ALERT
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import AuditEntry, Webhook, WebhookAttempt, WebhookDelivery, WebhookMessage
from tenancy.notifications.outgoing import write_outgoing_message
from tests.conftest import House
from tests.doubles.webhook_receiver import Receiver
from tests.doubles.webhook_receiver import receiver as receiver
from tests.factories.budgets import NOON
from tests.factories.webhooks import as_it_is, connect_hook, half_spent, log_of, make_due
from tests.factories.world import make_world
from tests.proves import proves


def verified(receiver: Receiver, secret: str, place: int = -1) -> Any:
    """The body that the scheme's own library lets through."""
    found = receiver.received[place]
    return Verifier(secret).verify(found.body, found.headers)


@proves("R-API-6", part="signed")
@proves("R-BUDGET-10", part="webhook")
def test_an_alert_reaches_the_endpoint_signed_by_its_secret(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    assert deliver_due() >= 1
    assert deliver_now(house.tenant.id) == 0
    body = verified(receiver, made.clear)
    assert body["type"] == BUDGET_ALERT
    assert body["data"]["threshold_percent"] == 50
    assert (body["data"]["window"], body["data"]["limit_usd"]) == ("day", "1")
    with pytest.raises(WebhookVerificationError):
        verified(receiver, "whsec_" + "QUJD" * 8)
    (one,) = log_of(house.tenant.id, made.webhook)
    assert (one.row.state, [(a.number, a.status) for a in one.attempts], one.lost) == (
        "delivered", [(1, 204)], 0,
    )  # fmt: skip


@proves("R-API-6", part="retried with backoff under one id")
def test_what_fails_is_sent_again_later_under_the_same_id(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    receiver.answer(500)
    receiver.answer(503, **{"retry-after": "600"})
    waits = []
    for _ in range(3):
        make_due(house.tenant.id)
        assert deliver_now(house.tenant.id) == 1
        (one,) = log_of(house.tenant.id, made.webhook)
        waits.append(one.row.next_at - one.attempts[-1].at)
        assert deliver_now(house.tenant.id) == 0
    assert timedelta(seconds=5) <= waits[0] < timedelta(minutes=1)
    assert waits[1] >= timedelta(seconds=600)
    assert len({found.headers["webhook-id"] for found in receiver.received}) == 1
    assert len({found.body for found in receiver.received}) == 1
    assert verified(receiver, made.clear)
    assert [attempt.status for attempt in one.attempts] == [500, 503, 204]
    assert [attempt.length for attempt in one.attempts] == [14, 14, 0]
    assert as_it_is(house.tenant.id, made.webhook).failing_since is None


@proves("W3", part="the log tells status and length only")
@pytest.mark.parametrize("answered", [b"HTTP/1.1 500 x\r\n\r\nTOPSECRET", b"-ERR TOPSECRET\r\n"])
def test_the_log_of_a_webhook_tells_no_word_of_the_answer(house: House, answered: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            link, _ = server.accept()
            with link:
                link.recv(65_536)
                link.sendall(answered)

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{port}/hook"
        set_places(house.tenant.id, (f"127.0.0.1:{port}",), expected=None, by=None, reason="Ours.")
        made = add_webhook(house.tenant.id, name="ops", url=url, events=("run.ended",), by=None)
        try_webhook(house.tenant.id, made.webhook.id, by=None)
    (one,) = log_of(house.tenant.id, made.webhook)
    told = str({name: getattr(one.attempts[0], name) for name in ("error", "status", "length")})
    assert "TOPSECRET" not in told
    columns = {field.name for field in WebhookAttempt._meta.get_fields()}
    assert columns == {
        "id",
        "tenant",
        "delivery",
        "number",
        "at",
        "milliseconds",
        "status",
        "error",
        "length",
    }


@proves("R-API-6", part="runs and requests")
def test_an_endpoint_is_told_of_people_asked_and_of_a_run_s_end(house: House, receiver: Receiver) -> None:
    world = make_world(house)
    made = connect_hook(house.tenant.id, receiver)
    with tenant_transaction(world.id):
        asking = bundled_content.get_bundled_boundary("tool-loop-default").evolve(
            slug="asking", on_exhaustion="request"
        )
        publish_boundary(world.id, asking, by=None)
    run = world.submit("tool-loop", "How much is 1 + 1?", boundary="asking", budget={"model_turns": 1})
    world.drive(run)
    (request,) = world.open_requests(run)
    world.decide(request, world.people.approver, "reject", reason="not worth more")
    world.drive(run)
    deliver_now(house.tenant.id)
    told = [verified(receiver, made.clear, place) for place in range(len(receiver.received))]
    by_kind = {one["type"]: one["data"] for one in told}
    assert sorted(one["type"] for one in told) == ["approval.asked", "run.ended"]
    assert (by_kind["approval.asked"]["request"], by_kind["approval.asked"]["kind"]) == (
        str(request.id), "budget",
    )  # fmt: skip
    assert (by_kind["run.ended"]["run"], by_kind["run.ended"]["terminal_code"]) == (
        str(run), "BUDGET_EXHAUSTED",
    )  # fmt: skip


@proves("R-API-6", part="recorded exactly once")
def test_a_message_is_written_once_and_falls_with_its_transaction(house: House, receiver: Receiver) -> None:
    connect_hook(house.tenant.id, receiver)

    def told(*, dies: bool = False) -> None:
        with tenant_transaction(house.tenant.id):
            write_outgoing_message(
                house.tenant.id, BUDGET_ALERT, "alert:1", {"n": 1}, at=database_now(), cursor=raw_cursor()
            )
            if dies:
                raise MemoryError

    with pytest.raises(MemoryError):
        told(dies=True)
    for _ in range(2):
        told()
    with tenant_transaction(house.tenant.id):
        assert (WebhookMessage.objects.count(), WebhookDelivery.objects.count()) == (1, 1)


@proves("R-API-6", part="delivered at least once")
def test_what_a_dead_sender_had_in_hand_is_sent_again(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    (lost,) = claim_of(house.tenant.id)
    assert claim_of(house.tenant.id) == []
    make_due(house.tenant.id)
    assert deliver_now(house.tenant.id) == 1
    (one,) = log_of(house.tenant.id, made.webhook)
    assert (one.row.state, one.lost) == ("delivered", 1)
    note_try(lost, AttemptResult(status=500))
    (one,) = log_of(house.tenant.id, made.webhook)
    assert (one.row.state, [a.number for a in one.attempts]) == ("delivered", [1, 2])


async def test_whatever_breaks_while_sending_is_a_try_that_failed() -> None:
    leave = EgressPolicy(origins=("https://hooks.example",))
    broken = OutgoingMessage(
        id="1", url="https://hooks.example", body=b"{}", at=NOON, leave=leave, secrets=("whsec_",)
    )
    sent = await send_webhook(broken)
    assert (sent.status, sent.error.partition(":")[0]) == (None, "EmptyWebhookSecretError")


@proves("W3", part="a redirect is not followed")
def test_a_redirect_is_a_failure_and_leads_nowhere(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    receiver.answer(307, location=f"http://{receiver.place}/elsewhere")
    try_webhook(house.tenant.id, made.webhook.id, by=None)
    assert [found.path for found in receiver.received] == ["/hook"]
    (one,) = log_of(house.tenant.id, made.webhook)
    assert (one.row.state, one.attempts[0].status) == ("waiting", 307)


@proves("W3", part="a private address, at save and at connect")
def test_a_private_address_is_refused_when_saved_and_when_connected(house: House, receiver: Receiver) -> None:
    with pytest.raises(EgressRefused):
        add_webhook(house.tenant.id, name="books", url=receiver.url, events=(BUDGET_ALERT,), by=None)
    secure = receiver.url.replace("http:", "https:")
    with pytest.raises(EgressRefused, match="not public"):
        add_webhook(house.tenant.id, name="books", url=secure, events=(BUDGET_ALERT,), by=None)
    made = connect_hook(house.tenant.id, receiver)
    set_places(house.tenant.id, (), expected=None, by=None, reason="No more.")
    try_webhook(house.tenant.id, made.webhook.id, by=None)
    assert receiver.received == []
    (one,) = log_of(house.tenant.id, made.webhook)
    assert one.row.state == "waiting"
    assert one.attempts[0].error.startswith("not sent: ")


def exhausted(house: House, webhook: Webhook, *, failing_for: timedelta) -> None:
    """Every try but one is used up."""
    with tenant_transaction(house.tenant.id):
        Webhook.objects.filter(id=webhook.id).update(failing_since=database_now() - failing_for)
        WebhookDelivery.objects.update(tries=TRIES - 1)


@proves("R-API-6", part="turned off after long failure, with notice")
def test_an_endpoint_that_fails_for_days_is_turned_off_and_its_admins_are_told(
    house: House, receiver: Receiver, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    exhausted(house, made.webhook, failing_for=timedelta(days=4))
    receiver.answer(500)
    assert deliver_now(house.tenant.id) == 1
    off = as_it_is(house.tenant.id, made.webhook)
    assert off.off_at is not None
    assert off.off_why == "Nothing has got through for 4 days; at last: it answered 500"
    with tenant_transaction(house.tenant.id):
        assert AuditEntry.objects.filter(verb="webhook.off").count() == 1
    assert (tell_off(house.tenant.id), tell_off(house.tenant.id)) == (1, 0)
    assert [one.to for one in mail.outbox] == [[house.people.admin.person.email]]
    assert "books" in mail.outbox[0].subject
    with pytest.raises(WebhookOff):
        try_webhook(house.tenant.id, made.webhook.id, by=None)


@proves("R-API-6", part="nothing is lost while it is off")
def test_what_happens_while_it_is_off_waits_until_it_is_on_again(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    receiver.answer(410)
    try_webhook(house.tenant.id, made.webhook.id, by=None)
    assert as_it_is(house.tenant.id, made.webhook).off_why == "It answered 410: it is gone for good."
    half_spent(house.tenant.id)
    assert deliver_now(house.tenant.id) == 0
    turn_on(house.tenant.id, made.webhook.id, by=None)
    assert deliver_now(house.tenant.id) == 1
    assert verified(receiver, made.clear)["type"] == BUDGET_ALERT


def test_one_message_that_failed_to_the_end_turns_nothing_off_while_others_get_through(
    house: House, receiver: Receiver
) -> None:
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    exhausted(house, made.webhook, failing_for=timedelta(hours=1))
    receiver.answer(400)
    deliver_now(house.tenant.id)
    (one,) = log_of(house.tenant.id, made.webhook)
    assert (one.row.state, as_it_is(house.tenant.id, made.webhook).off_at) == ("failed", None)


@proves("R-API-6", part="replayable")
def test_a_delivery_is_replayed_under_its_own_id_and_the_log_keeps_both(
    house: House, receiver: Receiver
) -> None:
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    deliver_now(house.tenant.id)
    (one,) = log_of(house.tenant.id, made.webhook)
    replay_delivery(house.tenant.id, made.webhook.id, one.row.id, by=None)
    assert [found.headers["webhook-id"] for found in receiver.received] == [str(one.row.message_id)] * 2
    (one,) = log_of(house.tenant.id, made.webhook)
    assert [(a.number, a.status) for a in one.attempts] == [(1, 204), (2, 204)]


def test_a_delivery_that_is_forgotten_as_it_is_replayed_is_none(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = connect_hook(house.tenant.id, receiver)
    gone = WebhookDelivery(tenant_id=house.tenant.id, webhook=made.webhook, state="done")
    monkeypatch.setattr("orchestrator.notifications.actions.webhooks.delivery_of", lambda *_: gone)
    with pytest.raises(NotFound):
        replay_delivery(house.tenant.id, made.webhook.id, gone.id, by=None)


@proves("R-API-6", part="secret rotated")
def test_a_rotated_secret_signs_beside_the_old_one_for_a_day(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    new = rotate_secret(house.tenant.id, made.webhook.id, by=None)
    try_webhook(house.tenant.id, made.webhook.id, by=None)
    assert verified(receiver, made.clear) == verified(receiver, new.clear)
    with tenant_transaction(house.tenant.id):
        Webhook.objects.filter(id=made.webhook.id).update(before_until=database_now() - OVERLAP)
    try_webhook(house.tenant.id, made.webhook.id, by=None)
    assert verified(receiver, new.clear)
    with pytest.raises(WebhookVerificationError):
        verified(receiver, made.clear)


@proves("R-SEC-4", part="signing secrets of webhooks")
def test_a_signing_secret_lies_sealed_and_opens_for_its_own_endpoint_alone(
    house: House, receiver: Receiver
) -> None:
    made = connect_hook(house.tenant.id, receiver)
    other = add_webhook(house.tenant.id, name="two", url=receiver.url, events=(BUDGET_ALERT,), by=None)
    with tenant_transaction(house.tenant.id):
        row = Webhook.objects.get(id=made.webhook.id)
        assert made.clear.encode() not in bytes(row.sealed)
        Webhook.objects.filter(id=other.webhook.id).update(sealed=row.sealed)
    try_webhook(house.tenant.id, other.webhook.id, by=None)
    (one,) = log_of(house.tenant.id, other.webhook)
    assert receiver.received == []
    assert SecretUnusable.__doc__ is not None
    assert "cannot be used" in one.attempts[0].error
    remove_webhook(house.tenant.id, made.webhook.id, by=None)
    with tenant_transaction(house.tenant.id):
        assert bytes(Webhook.objects.get(id=made.webhook.id).sealed) == b""


def test_a_removed_endpoint_is_told_nothing_and_its_log_stays(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    half_spent(house.tenant.id)
    remove_webhook(house.tenant.id, made.webhook.id, by=None)
    make_due(house.tenant.id)
    assert deliver_now(house.tenant.id) == 0
    assert [one.row.state for one in log_of(house.tenant.id, made.webhook)] == ["failed"]
    with pytest.raises(NotFound):
        rotate_secret(house.tenant.id, made.webhook.id, by=None)


def test_an_endpoint_asks_for_known_events_under_a_name_of_its_own(house: House, receiver: Receiver) -> None:
    connect_hook(house.tenant.id, receiver)
    with pytest.raises(NameTaken):
        add_webhook(house.tenant.id, name="books", url=receiver.url, events=(BUDGET_ALERT,), by=None)
    for name, url, events in (
        ("", receiver.url, (BUDGET_ALERT,)), ("a", receiver.url, ()), ("a", receiver.url, ("no.such",)),
        ("a", "ftp://hooks.example", (BUDGET_ALERT,)),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            add_webhook(house.tenant.id, name=name, url=url, events=events, by=None)


@proves("R-SEC-1", part="another tenant's endpoint")
def test_another_tenant_has_no_such_endpoint_and_is_told_nothing(house: House, receiver: Receiver) -> None:
    made = connect_hook(house.tenant.id, receiver)
    elsewhere = house.people.other_tenant.id
    half_spent(elsewhere)
    deliver_now(elsewhere)
    assert receiver.received == []
    for verb in (rotate_secret, turn_on, remove_webhook, try_webhook):
        with pytest.raises(NotFound):
            verb(elsewhere, made.webhook.id, by=None)
    assert as_it_is(house.tenant.id, made.webhook).removed_at is None
