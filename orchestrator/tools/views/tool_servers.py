"""GET and POST /tool-servers and /tool-servers/<name>: what servers offer, admitted or not (R-TOOL-21)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.core.common.errors import EgressRefused, NameTaken, ProposalOpen, ServerUnreachable
from orchestrator.core.domain.tool_category import CATEGORIES, NONE
from orchestrator.core.domain.tool_spec import Reversibility
from orchestrator.core.tools.registration import asked_admission
from orchestrator.tenants.actions.limit_changes import ask_for_places
from orchestrator.tools.actions.change_requests import ask_to_admit
from orchestrator.tools.actions.tool_servers import (
    NewServer,
    add_server,
    look_at_server,
    quarantine_tool,
    remove_server,
)
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tool_servers import (
    get_expiry_status,
    offered_by,
    places_before,
    places_now,
    secret_of_server,
    server_of,
    servers_now,
)
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from orchestrator.tools.views.compensation_form import WayBack
from orchestrator.tools.views.tool_server_forms import PlacesForm, SecretForm, ServerForm, make_reason_field
from orchestrator.tools.views.tools import POLICIES, WORDS
from tenancy.core.errors import InterlockError, InvalidInput, SecretUnusable, Stale
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Secret
from tenancy.people.member_queries import names_of
from tenancy.rest.serializer_fields import path_name
from tenancy.secret_store import keep_secret, revoke_secret, secrets_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

KINDS_OF_TOOLS = [(NONE, "None"), *((name, one.title) for name, one in CATEGORIES.items())]
BACK = (
    (Reversibility.PURE, "it changes nothing"),
    (Reversibility.REVERSIBLE, "it can be undone"),
    (Reversibility.COMPENSABLE, "it can be made good by another action"),
    (Reversibility.IRREVERSIBLE, "it cannot be taken back"),
)
RECOVERY = (
    ("none", "A person decides: it is never made again by itself"),
    ("read_only", "It is made again: it only reads"),
    ("keys", "It is made again under its key: the server promises one effect a key"),
    ("lookup", "It is looked up by another tool of this server"),
)
NO_EFFECT = "An answer that says that a call failed means that it changed nothing"
NO_EFFECT_HELP = "Else what it may have changed stays open, and the same is not simply sent again."
REFUSALS = (EgressRefused, NameTaken, ServerUnreachable, SecretUnusable, Stale)


class AdmitForm(WayBack):
    """How a tool may be used. An admin says its class, or the category that has one by default."""

    tool = forms.CharField(widget=forms.HiddenInput, max_length=128)
    seen = forms.CharField(widget=forms.HiddenInput, max_length=64)
    category = forms.ChoiceField(label="Category", choices=KINDS_OF_TOOLS, required=False, initial=NONE)
    risk = forms.ChoiceField(
        label="Risk class", required=False, help_text="Empty: as the category has it.",
        choices=[("", "As its category"), *((risk.value, word) for risk, word in WORDS.items())],
    )  # fmt: skip
    reversibility = forms.ChoiceField(
        label="Can it be taken back?", choices=[("", "Choose"), *((one.value, word) for one, word in BACK)]
    )
    recovery = forms.ChoiceField(
        label="If nobody knows whether a call happened", choices=RECOVERY, initial="none"
    )
    error_means_no_effect = forms.BooleanField(label=NO_EFFECT, required=False, help_text=NO_EFFECT_HELP)
    lookup_tool = forms.CharField(label="Look-up: tool", max_length=128, required=False)
    lookup_key = forms.CharField(
        label="Look-up: argument for the key", max_length=128, required=False, initial="key"
    )
    lookup_found = forms.CharField(
        label="Look-up: where it stands in the answer", max_length=200, required=False, initial="/"
    )
    approval = forms.ChoiceField(label="A person decides", choices=POLICIES, initial="by_risk")
    timeout_ms = forms.IntegerField(label="Timeout, ms", min_value=1, max_value=600_000, initial=15_000)
    rate_per_minute = forms.IntegerField(
        label="Calls a minute and run", min_value=1, max_value=100_000, initial=20
    )
    effect_sentence = forms.CharField(
        label="What a call does, for the approval", max_length=500, required=False,
        help_text="Arguments in braces: Send a note to {to}.",
    )  # fmt: skip
    sensitive = forms.CharField(
        label="Sensitive arguments", max_length=2_000, required=False,
        help_text="Empty: all of a change's. Else their names, such as /to /text.",
    )  # fmt: skip
    addresses = forms.CharField(
        label="Arguments that are addresses", max_length=2_000, required=False,
        help_text="Empty: those whose names say so. What looks like an address always is.",
    )  # fmt: skip
    reason = make_reason_field()

    def admission(self) -> dict[str, Any]:
        """The fields as an admission."""
        given = {name: self.cleaned_data[name] for name in PLAIN}
        given |= self.way_back()
        given |= {"category": given["category"] or NONE, "risk": self.cleaned_data["risk"] or None}
        for name in ("sensitive", "addresses"):
            if marked := self.cleaned_data[name].split():
                given[name] = marked
        if given["recovery"] == "lookup":
            given["lookup"] = {
                "tool": self.cleaned_data["lookup_tool"], "found": self.cleaned_data["lookup_found"],
                "arguments": {self.cleaned_data["lookup_key"]: "/key"},
            }  # fmt: skip
        return given


PLAIN = (
    "category", "reversibility", "recovery", "approval", "timeout_ms", "rate_per_minute", "effect_sentence",
    "error_means_no_effect",
)  # fmt: skip


def _list_step_up_areas(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Keeping and revoking a secret is a change of keys."""
    secret = "value" in request.POST or "revoke" in request.POST
    return (Area.KEYS,) if secret and "places" not in request.POST else ()


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.INSPECT, asks=_list_step_up_areas)
def show_tool_servers_page(request: PageRequest) -> HttpResponse:
    """Every tool server of the tenant, the private places, and the names of its secrets."""
    if request.method != "POST":
        return _render_server_list(request)
    check_scopes(request.member, Scope.ADMIN)
    if "places" in request.POST:
        return _submit_private_hosts(request)
    if "revoke" in request.POST:
        return _submit_secret_revocation(request)
    return _submit_secret(request) if "value" in request.POST else _submit_server(request)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.INSPECT)
def show_tool_server_page(request: PageRequest, server: str) -> HttpResponse:
    """One server and what it offers. A POST looks at it, admits, quarantines or removes."""
    path_name(server)
    house, who = request.member.tenant.id, request.member.principal
    if request.method != "POST":
        return _render_server_detail(request, server)
    check_scopes(request.member, Scope.ADMIN)
    with tenant_transaction(house):
        server_of(server)
    act, reason = request.POST.get("act", ""), request.POST.get("reason", "")[:500]
    if act == "admit":
        return _submit_admission(request, server)
    try:
        if act == "look":
            look_at_server(house, server, by=who)
            messages.success(request, f"This is what {server} offers now.")
        elif not reason.strip():
            messages.error(request, "Say why: the reason stands in the audit log.")
            return _render_server_detail(request, server, status=422)
        elif act == "quarantine":
            quarantine_tool(house, server, request.POST.get("tool", ""), by=who, reason=reason)
            messages.success(request, "The tool takes no further call until it is admitted again.")
        elif act == "remove":
            remove_server(house, server, by=who, reason=reason)
            messages.success(request, f"{server} was removed.")
            return redirect("servers")
    except REFUSALS as error:
        messages.error(request, str(error))
        return _render_server_detail(request, server, status=422)
    return redirect("server", server=server)


def _submit_server(request: PageRequest) -> HttpResponse:
    form = ServerForm(request.POST)
    if not form.is_valid():
        return _render_server_list(request, server_form=form, status=422)
    given = {name: form.cleaned_data[name] for name in ("slug", "kind", "address", "secret")}
    new = NewServer(**given, secret_header=form.cleaned_data["secret_header"] or "Authorization")
    try:
        made = add_server(
            request.member.tenant.id, new, by=request.member.principal, reason=form.cleaned_data["reason"]
        )
    except (InvalidInput, *REFUSALS) as error:
        _add_form_errors(form, error)
        return _render_server_list(request, server_form=form, status=422)
    messages.success(request, f"{made.slug} was added. Look at what it offers next.")
    return redirect("server", server=made.slug)


def _submit_private_hosts(request: PageRequest) -> HttpResponse:
    form = PlacesForm(request.POST)
    if not form.is_valid():
        return _render_server_list(request, places_form=form, status=422)
    wanted = tuple(line.strip() for line in form.cleaned_data["places"].splitlines() if line.strip())
    try:
        found = ask_for_places(
            request.member.tenant.id,
            wanted,
            expected=form.cleaned_data["version"],
            who=build_requester(request),
            reason=form.cleaned_data["reason"],
        )
    except (InvalidInput, ProposalOpen, Stale) as error:
        _add_form_errors(form, error)
        return _render_server_list(request, places_form=form, status=422)
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, "The list holds from the next call on.")
    return redirect("servers")


def _submit_secret(request: PageRequest) -> HttpResponse:
    form = SecretForm(request.POST)
    if not form.is_valid():
        return _render_server_list(request, secret_form=form, status=422)
    given = form.cleaned_data
    try:
        keep_secret(
            request.member.tenant.id, given["name"], given["value"], origin=given["origin"],
            by=request.member.principal, reason=given["reason"],
        )  # fmt: skip
    except InvalidInput as error:
        _add_form_errors(form, error)
        return _render_server_list(request, secret_form=form, status=422)
    messages.success(request, f"The secret {given['name']} is kept.")
    return redirect("servers")


def _submit_secret_revocation(request: PageRequest) -> HttpResponse:
    """A secret that serves nothing any more."""
    name, reason = request.POST["revoke"], request.POST.get("reason", "").strip()[:500]
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
        return _render_server_list(request, status=422)
    revoke_secret(request.member.tenant.id, path_name(name), by=request.member.principal, reason=reason)
    messages.success(request, f"The secret {name} is sent nowhere any more.")
    return redirect("servers")


def _submit_admission(request: PageRequest, slug: str) -> HttpResponse:
    house, form = request.member.tenant.id, AdmitForm(request.POST)
    if not form.is_valid():
        return _render_server_detail(request, slug, form=form, status=422)
    try:
        now = ask_to_admit(
            house,
            slug,
            form.cleaned_data["tool"],
            form.cleaned_data["seen"],
            asked_admission(form.admission()),
            who=build_requester(request),
            reason=form.cleaned_data["reason"],
        )
    except (InvalidInput, ProposalOpen, *REFUSALS) as error:
        _add_form_errors(form, error)
        return _render_server_detail(request, slug, form=form, status=422)
    if isinstance(now, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, f"{now.spec.name} may be called, as version {now.spec.version}.")
    return redirect("server", server=slug)


def _add_form_errors(form: forms.Form, error: InterlockError) -> None:
    """The error beside its field, or above the form."""
    if not isinstance(error, InvalidInput):
        form.add_error(None, str(error))
        return
    for found in error.data["errors"]:
        name = found["pointer"].strip("/").split("/")[0]
        field = {"lookup": "lookup_tool"}.get(name, name)
        form.add_error(field if field in form.fields else None, found["detail"])


def _list_expiring_secrets(house: UUID) -> list[tuple[Secret, str]]:
    """The secrets that are kept, each with whether it ends soon."""
    now = database_now()
    return [(one, get_expiry_status(one, now)) for one in secrets_of(house)]


def _render_server_list(
    request: PageRequest,
    *,
    server_form: forms.Form | None = None,
    places_form: forms.Form | None = None,
    secret_form: forms.Form | None = None,
    status: int = 200,
) -> HttpResponse:
    house, may_admin = request.member.tenant.id, request.member.may(Scope.ADMIN)
    with tenant_transaction(house):
        now, before = places_now(), places_before()
        initial = {"places": "\n".join(now.places), "version": now.version}
        shown = {
            "server_form": server_form or ServerForm(), "secret_form": secret_form or SecretForm(),
            "places_form": places_form or PlacesForm(initial=initial),
        }  # fmt: skip
        for name, form in shown.items():
            # Each asks for its reason: labels and links to errors must find their own.
            form.auto_id = f"{name}_%s"
        context = shown | {
            "servers": servers_now(), "places": now, "before": before, "may_admin": may_admin,
            "may_inspect": request.member.may(Scope.INSPECT),
            "secrets": _list_expiring_secrets(house) if may_admin else [],
            "names": names_of([one.by for one in before]),
        }  # fmt: skip
        return render(request, "tools/servers.html", context, status=status)


def _render_server_detail(
    request: PageRequest, slug: str, *, form: AdmitForm | None = None, status: int = 200
) -> HttpResponse:
    house, may_admin = request.member.tenant.id, request.member.may(Scope.ADMIN)
    wanted = form.data.get("tool") if form is not None else None
    with tenant_transaction(house):
        row = server_of(slug)
        secret = secret_of_server(row)
        tools = [
            {
                "one": one,
                "definition": one.now.model_dump(mode="json") if one.now is not None else None,
                "form": form if one.row.tool == wanted
                else AdmitForm(initial={"tool": one.row.tool, "seen": one.row.seen}, auto_id=f"t{place}_%s"),
                "opened": one.row.tool == wanted,
            }
            for place, one in enumerate(offered_by(row))
        ]  # fmt: skip
        context = {
            "server": row,
            "tools": tools,
            "may_admin": may_admin,
            "names": names_of([row.created_by]),
            "secret": secret,
            "ending": get_expiry_status(secret, database_now(), renewed=False) if secret else "",
        }
        return render(request, "tools/server.html", context, status=status)
