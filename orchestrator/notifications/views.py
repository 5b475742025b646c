"""GET and POST /tenant/webhooks and /tenant/webhooks/<id>: endpoints for events (R-API-6, R-UI-9)."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import orjson
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.core.common.errors import EgressRefused, NameTaken
from orchestrator.core.notifications.delivery_policy import FEWEST_DAYS, MOST_DAYS, TRIES
from orchestrator.core.notifications.errors import WebhookOff
from orchestrator.notifications.actions.webhook_retention import keep_log
from orchestrator.notifications.actions.webhooks import (
    NewSecret,
    add_webhook,
    remove_webhook,
    replay_delivery,
    rotate_secret,
    try_webhook,
    turn_on,
)
from orchestrator.notifications.queries import (
    SHOWN,
    DeliveryLog,
    deliveries_of,
    delivery_of,
    keeping_now,
    list_deliveries_with_attempts,
    list_webhook_endpoints,
    webhook_of,
    webhooks_now,
)
from orchestrator.tools.views.tool_server_forms import make_reason_field
from tenancy.core.errors import InvalidInput, Stale
from tenancy.core.event_kinds import KINDS, format_headline
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, require_member


class WebhookForm(forms.Form):
    """An endpoint to add."""

    name = forms.CharField(label="Name", max_length=80, help_text="What listens there.")
    url = forms.CharField(
        label="Address",
        max_length=2_000,
        help_text="https; http only at a private place, as named with the tool servers.",
    )
    events = forms.MultipleChoiceField(
        label="Told of", choices=[(kind, f"{said} ({kind})") for kind, said in KINDS.items()],
        widget=forms.CheckboxSelectMultiple, initial=list(KINDS),
    )  # fmt: skip


class KeepingForm(forms.Form):
    """The retention period of the delivery log."""

    days = forms.IntegerField(
        label="Days", min_value=FEWEST_DAYS, max_value=MOST_DAYS,
        help_text="Counted from when a message was taken or given up. What still waits stays.",
    )  # fmt: skip
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)


def _areas_of_list(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Return the keys area for a new endpoint, which gets a new secret; none for the retention period."""
    return () if request.POST.get("act") == "keep" else (Area.KEYS,)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.ADMIN, asks=_areas_of_list)
def show_webhooks_page(request: PageRequest) -> HttpResponse:
    """Render the tenant's endpoints. A POST adds one and shows its secret once, or sets the log retention."""
    if request.method != "POST":
        return _render_webhook_list(request)
    if request.POST.get("act") == "keep":
        return _submit_log_retention(request)
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _render_webhook_list(request, form=form, status=422)
    given = form.cleaned_data
    try:
        made = add_webhook(
            request.member.tenant.id, name=given["name"], url=given["url"], events=tuple(given["events"]),
            by=request.member.principal,
        )  # fmt: skip
    except (InvalidInput, EgressRefused, NameTaken) as error:
        _add_form_errors(form, error)
        return _render_webhook_list(request, form=form, status=422)
    return _render_webhook_list(request, made=made)


def _submit_log_retention(request: PageRequest) -> HttpResponse:
    keep = KeepingForm(request.POST, auto_id="keep_%s")
    if not keep.is_valid():
        return _render_webhook_list(request, keep=keep, status=422)
    given = keep.cleaned_data
    try:
        keep_log(
            request.member.tenant.id, given["days"], expected=given["version"], by=request.member.principal,
            reason=given["reason"],
        )  # fmt: skip
    except Stale as error:
        keep.add_error(None, str(error))
        return _render_webhook_list(request, keep=keep, status=409)
    messages.success(request, f"What was sent is kept for {given['days']} days.")
    return redirect("webhooks")


def _areas_of_one(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Return the keys area if an endpoint gets a new secret or is removed together with its secret."""
    return (Area.KEYS,) if request.POST.get("act") in ("rotate", "remove") else ()


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.ADMIN, asks=_areas_of_one)
def show_webhook_page(request: PageRequest, webhook_id: UUID) -> HttpResponse:
    """Render one endpoint with its delivery log.

    A POST sends a test, rotates the secret, enables or removes the endpoint, or replays a delivery.
    """
    house, who = request.member.tenant.id, request.member.principal
    if request.method != "POST":
        return _render_webhook_detail(request, webhook_id)
    with tenant_transaction(house):
        webhook_of(webhook_id)
    act = request.POST.get("act", "")
    if act == "rotate":
        return _render_webhook_detail(request, webhook_id, made=rotate_secret(house, webhook_id, by=who))
    if act == "remove":
        removed = remove_webhook(house, webhook_id, by=who)
        messages.success(request, f"{removed.name} was removed; nothing is sent to it any more.")
        return redirect("webhooks")
    if act == "on":
        turn_on(house, webhook_id, by=who)
        messages.success(request, "It is on: what has waited is sent first.")
    elif sends := _select_send_action(request, webhook_id, act):
        _send_and_report(request, webhook_id, sends)
    return redirect("webhook", webhook_id=webhook_id)


def _select_send_action(request: PageRequest, webhook_id: UUID, act: str) -> Callable[[], UUID] | None:
    """Return a function that sends a message now, or None if the form does not ask for that."""
    house, who = request.member.tenant.id, request.member.principal
    if act == "test":
        return lambda: try_webhook(house, webhook_id, by=who)
    if act == "replay":
        wanted = uuid_or_none(request.POST.get("delivery", ""))
        return lambda: replay_delivery(house, webhook_id, wanted, by=who)
    return None


def _send_and_report(request: PageRequest, webhook_id: UUID, sends: Callable[[], UUID]) -> None:
    """Send the message and report the outcome."""
    try:
        delivery = sends()
    except WebhookOff as error:
        messages.error(request, str(error))
        return
    with tenant_transaction(request.member.tenant.id):
        (one,) = list_deliveries_with_attempts([delivery_of(webhook_of(webhook_id), delivery)])
    if one.row.state == "delivered":
        messages.success(request, f"It was taken: {_describe_last_attempt(one)}.")
    else:
        messages.error(request, f"It was not taken: {_describe_last_attempt(one)}.")


def _describe_last_attempt(one: DeliveryLog) -> str:
    if not one.attempts:
        return "somebody else is sending it just now"
    last = one.attempts[-1]
    return last.error or f"the endpoint answered {last.status} in {last.milliseconds} ms"


def _format_delivery_headline(one: DeliveryLog) -> str:
    return format_headline(one.row.message.kind, orjson.loads(one.text)["data"])


def _add_form_errors(form: forms.Form, error: InvalidInput | EgressRefused | NameTaken) -> None:
    """Add the error to the field it concerns."""
    if isinstance(error, InvalidInput):
        for found in error.data["errors"]:
            name = found["pointer"].strip("/").split("/")[0]
            form.add_error(name if name in form.fields else None, found["detail"])
        return
    form.add_error("name" if isinstance(error, NameTaken) else "url", str(error))


def _render_webhook_list(
    request: PageRequest,
    *,
    form: WebhookForm | None = None,
    keep: KeepingForm | None = None,
    made: NewSecret | None = None,
    status: int = 200,
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now = keeping_now()
        blank = KeepingForm(auto_id="keep_%s", initial={"days": now.days, "version": now.version})
        context = {
            "rows": webhooks_now(), "made": made, "form": form or WebhookForm(), "keep": keep or blank,
            "kept": now, "names": names_of([now.by]),
        }  # fmt: skip
        return render(request, "webhooks/list.html", context, status=status)


def _render_webhook_detail(
    request: PageRequest, webhook_id: UUID, *, made: NewSecret | None = None
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        (one,) = list_webhook_endpoints([webhook_of(webhook_id)])
        newest = list(deliveries_of(one.row).order_by("-created_at", "-id")[: SHOWN + 1])
        old = one.row.before_until
        context: Mapping[str, Any] = {
            "one": one,
            "made": made,
            "more": len(newest) > SHOWN,
            "shown": SHOWN,
            "tries": TRIES,
            "events": [(kind, KINDS.get(kind, kind)) for kind in one.row.events],
            "log": [
                (_format_delivery_headline(each), each)
                for each in list_deliveries_with_attempts(newest[:SHOWN])
            ],
            "names": names_of([one.row.created_by]),
            "kept": keeping_now(),
            "old_until": old if old is not None and old > database_now() else None,
        }
        return render(request, "webhooks/one.html", dict(context))
