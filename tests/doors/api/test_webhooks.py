"""Webhooks for programs: added, tried, replayed, rotated and removed (R-API-3, R-API-6)."""

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from orchestrator.notifications.actions.webhook_delivery import deliver_now
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import IdempotencyKey
from tests.doors.api.program import Program, pointers, refusal
from tests.doubles.webhook_receiver import Receiver
from tests.doubles.webhook_receiver import receiver as receiver
from tests.factories.webhooks import half_spent
from tests.factories.world import World
from tests.proves import proves


@pytest.fixture
def body(world: World, receiver: Receiver) -> dict[str, object]:
    """An endpoint that may be added."""
    set_places(world.id, (receiver.place,), expected=None, by=None, reason="A receiver of ours.")
    return {"name": "books", "url": receiver.url, "events": ["budget.alert"], "reason": "The books"}


@proves("R-API-6", part="by API")
def test_a_program_adds_tries_follows_and_removes_an_endpoint(
    admin: Program, world: World, receiver: Receiver, body: dict[str, object]
) -> None:
    made = admin.post("/webhooks", body)
    assert made.status_code == 201
    at, secret = f"/webhooks/{made.json()['id']}", made.json()["secret"]
    assert secret not in admin.get("/webhooks").content.decode() + admin.get(at).content.decode()
    tried = admin.post(f"{at}/test").json()
    assert (tried["state"], tried["log"][0]["status"]) == ("delivered", 204)
    assert Verifier(secret).verify(receiver.received[0].body, receiver.received[0].headers)
    half_spent(world.id)
    receiver.answer(500)
    deliver_now(world.id)
    listed = {row["type"]: row for row in admin.get(f"{at}/deliveries").json()["results"]}
    assert {kind: row["state"] for kind, row in listed.items()} == {
        "webhook.test": "delivered", "budget.alert": "waiting",
    }  # fmt: skip
    assert (admin.get(at).json()["waiting"], admin.get(at).json()["failing_since"] is None) == (1, False)
    again = admin.post(f"{at}/deliveries/{listed['budget.alert']['id']}/replay").json()
    assert [one["status"] for one in again["log"]] == [500, 204]
    assert receiver.received[-1].body.decode() == again["body"]
    assert admin.get(f"{at}/deliveries?limit=1").json()["next"] is not None
    assert admin.send("delete", at).status_code == 204
    assert refusal(admin.get(at)) == (404, "not-found")


@proves("R-SEC-4", part="signing secrets, shown once by API")
def test_a_secret_is_in_the_first_answer_and_kept_in_none(
    admin: Program, world: World, body: dict[str, object]
) -> None:
    first, second = (admin.post("/webhooks", body, once="one-1") for _ in range(2))
    assert (first.status_code, second.status_code, second["Idempotent-Replay"]) == (201, 201, "true")
    assert second.json() == {**first.json(), "secret": None}
    rotated = admin.post(f"/webhooks/{first.json()['id']}/rotate", {}, once="two-2").json()
    assert rotated["secret"] not in (None, first.json()["secret"])
    assert rotated["old_secret_until"] is not None
    with tenant_transaction(world.id):
        assert "whsec_" not in str(list(IdempotencyKey.objects.values_list("answer", flat=True)))


def test_what_cannot_be_told_is_refused_by_its_field(admin: Program, body: dict[str, object]) -> None:
    assert admin.post("/webhooks", body).status_code == 201
    assert refusal(admin.post("/webhooks", body)) == (409, "name-taken")
    wrong = admin.post("/webhooks", {**body, "name": "", "events": ["no.such"]})
    assert (wrong.status_code, pointers(wrong)) == (400, ["/name", "/events/0"])
    for url in ("http://hooks.example/in", "https://10.0.0.1/in", "https://169.254.169.254/"):
        assert refusal(admin.post("/webhooks", {**body, "name": "b", "url": url})) == (422, "egress-refused")
    unclear = admin.post("/webhooks", {**body, "name": "b", "url": "https://a@hooks.example/in"})
    assert (unclear.status_code, pointers(unclear)) == (400, ["/url"])


def test_an_endpoint_that_is_off_is_turned_on_before_it_is_tried(
    admin: Program, receiver: Receiver, body: dict[str, object]
) -> None:
    at = f"/webhooks/{admin.post('/webhooks', body).json()['id']}"
    receiver.answer(410)
    assert admin.post(f"{at}/test").json()["state"] == "failed"
    assert refusal(admin.post(f"{at}/test")) == (409, "webhook-off")
    assert admin.post(f"{at}/on").json()["on"] is True
    assert admin.post(f"{at}/test").json()["state"] == "delivered"


def test_a_program_says_how_long_the_log_is_kept(admin: Program) -> None:
    before = admin.get("/webhook-log")
    assert (before.json()["days"], before["ETag"]) == (90, '"0"')
    body = {"days": 30, "reason": "A month will do"}
    assert admin.send("put", "/webhook-log", body, headers={"If-Match": '"0"'}).json()["version"] == 1
    assert refusal(admin.send("put", "/webhook-log", body, headers={"If-Match": '"0"'})) == (412, "stale")
    assert refusal(admin.send("put", "/webhook-log", body, headers={"If-Match": '"\u00b2"'})) == (
        412,
        "stale",
    )
    assert pointers(admin.send("put", "/webhook-log", {**body, "days": 0})) == ["/days"]
