"""The pages of webhooks: added, tried, rotated, turned on, removed; the log of tries (R-API-6, R-UI-9)."""

import re
from typing import Any

from django.test import Client
from standardwebhooks.webhooks import Webhook as Verifier

from orchestrator.notifications.actions.webhook_delivery import deliver_now
from orchestrator.tools.actions.private_hosts import set_places
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import AuditEntry
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.doubles.webhook_receiver import Receiver
from tests.doubles.webhook_receiver import receiver as receiver
from tests.factories.webhooks import connect_hook, half_spent
from tests.factories.world import World
from tests.proves import proves

LIST = "/tenant/webhooks"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


def added(admin: Client, **typed: Any) -> Any:
    """The form of the list, sent."""
    return admin.post(LIST, {"name": "books", "events": ["budget.alert"], **typed})


@proves("R-API-6", part="pages")
def test_an_admin_adds_and_tries_an_endpoint_on_the_pages(
    admin: Client, world: World, receiver: Receiver
) -> None:
    refused = added(admin, url=receiver.url)
    assert (refused.status_code, receiver.url in text(refused)) == (422, True)
    assert "by http only at a private place" in text(refused)
    set_places(world.id, (receiver.place,), expected=None, by=None, reason="Ours")
    made = added(admin, url=receiver.url)
    (secret,) = set(SECRET.findall(text(made)))
    (page,) = re.findall(r'href="(/tenant/webhooks/[^"]+)"', text(admin.get(LIST)))
    assert not SECRET.search(text(admin.get(LIST)) + text(admin.get(page)))
    answer = admin.post(page, {"act": "test"}, follow=True)
    assert "It was taken: the endpoint answered 204" in text(answer)
    assert Verifier(secret).verify(receiver.received[0].body, receiver.received[0].headers)
    rotated = admin.post(page, {"act": "rotate"})
    assert set(SECRET.findall(text(rotated))).isdisjoint({secret})
    assert "the one before signs too" in text(rotated)
    assert admin.post(page, {"act": "remove"})["Location"] == LIST
    assert admin.get(page).status_code == 404
    with tenant_transaction(world.id):
        verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {f"webhook.{one}" for one in ("add", "test", "rotate", "remove")} <= verbs


def test_the_log_shows_each_try_and_sends_again(admin: Client, world: World, receiver: Receiver) -> None:
    made = connect_hook(world.id, receiver)
    page = f"{LIST}/{made.webhook.id}"
    half_spent(world.id)
    receiver.answer(500)
    deliver_now(world.id)
    shown = text(admin.get(page))
    assert "answered <b>500</b>" in shown
    assert "Nothing has got through since" in shown
    assert "50 % of the ceiling for a day" in shown
    assert "threshold_percent" in shown
    (delivery,) = re.findall(r'name="delivery" value="([^"]+)"', shown)
    assert "It was taken" in text(admin.post(page, {"act": "replay", "delivery": delivery}, follow=True))
    assert "Delivered" in text(admin.get(page))
    assert admin.post(page, {"act": "replay", "delivery": "x"}).status_code == 404


def test_an_endpoint_that_is_off_says_why_and_is_turned_on(
    admin: Client, world: World, receiver: Receiver
) -> None:
    page = f"{LIST}/{connect_hook(world.id, receiver).webhook.id}"
    receiver.answer(410)
    assert "It was not taken: the endpoint answered 410" in text(
        admin.post(page, {"act": "test"}, follow=True)
    )
    assert "It is told of no alert until" in text(admin.get("/budgets"))
    assert "It is told of no alert" not in text(at(world.people.auditor).get("/budgets"))
    off = text(admin.get(page))
    assert "It answered 410: it is gone for good." in off
    assert "Send a test" not in off
    assert "is off; turn it on first" in text(admin.post(page, {"act": "test"}, follow=True))
    assert "It is on" in text(admin.post(page, {"act": "on"}, follow=True))


def test_an_admin_says_how_long_the_log_is_kept(admin: Client) -> None:
    assert "after <b>90 days</b>" in text(admin.get(LIST))
    typed = {"act": "keep", "days": "30", "version": "0"}
    assert admin.post(LIST, typed).status_code == 422
    said = text(admin.post(LIST, {**typed, "reason": "A month <will> do"}, follow=True))
    assert "after <b>30 days</b>" in said
    assert "A month &lt;will&gt; do" in said
    late = admin.post(LIST, {**typed, "reason": "Late"})
    assert (late.status_code, "Late" in text(late)) == (409, True)


def test_only_an_admin_sees_where_the_endpoints_are(world: World) -> None:
    for who in (world.people.operator, world.people.auditor):
        assert at(who).get(LIST).status_code == 403
        assert LIST not in text(at(who).get("/runs"))
