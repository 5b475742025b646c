"""GET and POST /outside: destinations of a tenant's bundled tools (R-TOOL-2, R-TOOL-19)."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from orchestrator.core.common.errors import ProposalOpen
from orchestrator.core.tools.destinations import Database
from orchestrator.tools.actions.change_requests import ask_for_databases, ask_for_mail, ask_to_list
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.destinations import (
    KINDS,
    OutsideNow,
    get_allowed_databases,
    mail_server,
    outside_before,
    outside_now,
)
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from orchestrator.tools.views.tool_server_forms import make_reason_field
from tenancy.core.errors import InterlockError, InvalidInput, Stale
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, require_member


class WebForm(forms.Form):
    """The web list."""

    allow = forms.CharField(
        label="Addresses", required=False, max_length=100_000, widget=forms.Textarea(attrs={"rows": 6}),
        help_text="One a line: https://docs.example/page; /* at its end for all below, then ?* for a query.",
    )  # fmt: skip
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)


class DatabaseForm(forms.Form):
    """A database to add. It replaces a database of the same name."""

    name = forms.CharField(label="Name", max_length=32, help_text="What tools call it.")
    host = forms.CharField(label="Host", max_length=253)
    port = forms.IntegerField(label="Port", min_value=1, max_value=65_535, initial=5432)
    database = forms.CharField(label="Database", max_length=63)
    reader = forms.CharField(
        label="Secret of the reader", max_length=64,
        help_text="user:password, kept for postgresql://host:port/database. Its role cannot write.",
    )  # fmt: skip
    writer = forms.CharField(label="Secret of the writer", max_length=64, required=False)
    tls = forms.ChoiceField(
        label="Encryption",
        initial="verified",
        choices=[("verified", "with a certificate that is checked"), ("required", "any"), ("off", "none")],
    )
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)


class MailForm(forms.Form):
    """The mail server."""

    sender = forms.CharField(label="From", max_length=254, help_text="The address that letters are from.")
    name = forms.CharField(label="Name of the sender", max_length=100, required=False)
    host = forms.CharField(
        label="Mail server",
        max_length=253,
        required=False,
        help_text="Empty: the operator's, if there is one.",
    )
    port = forms.IntegerField(label="Port", min_value=1, max_value=65_535, initial=587)
    tls = forms.ChoiceField(
        label="Encryption",
        initial="starttls",
        choices=[("starttls", "STARTTLS"), ("implicit", "from the beginning"), ("off", "none")],
    )
    secret = forms.CharField(
        label="Secret", max_length=64, required=False, help_text="user:password, kept for smtp://host:port."
    )
    domains = forms.CharField(
        label="Domains of recipients", required=False, max_length=30_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One a line. Empty: any recipient that a person agrees to.",
    )  # fmt: skip
    reason = make_reason_field()
    version = forms.IntegerField(widget=forms.HiddenInput)


FORMS: dict[str, type[forms.Form]] = {"web": WebForm, "databases": DatabaseForm, "mail": MailForm}


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.INSPECT)
def show_destinations_page(request: PageRequest) -> HttpResponse:
    """Render the web list, the databases and the mail server, each with its versions."""
    if request.method != "POST":
        return _render_destinations_page(request)
    check_scopes(request.member, Scope.ADMIN)
    act = request.POST.get("act", "")
    if act == "forget":
        return _remove_database(request)
    if act not in FORMS:
        return _render_destinations_page(request, status=422)
    form = FORMS[act](request.POST, auto_id=f"{act}_%s")
    if not form.is_valid():
        return _render_destinations_page(request, {act: form}, status=422)
    try:
        waiting = _update_destination(request, act, dict(form.cleaned_data))
    except (InvalidInput, Stale, ProposalOpen) as error:
        add_form_errors(form, error)
        return _render_destinations_page(request, {act: form}, status=422)
    if not waiting:
        messages.success(request, "It holds from the next call on.")
    return redirect_to_change_requests(request) if waiting else redirect("outside")


def _update_destination(request: PageRequest, act: str, given: dict[str, Any]) -> bool:
    """Request the change of a destination and return whether it waits for a second person."""
    house, reason, version = request.member.tenant.id, given.pop("reason"), given.pop("version")
    found: OutsideNow | ToolProposal
    if act == "web":
        lines = tuple(line.strip() for line in given["allow"].splitlines() if line.strip())
        found = ask_to_list(house, lines, expected=version, who=build_requester(request), reason=reason)
    elif act == "databases":
        wanted = (*(one for one in _list_databases(request)[1] if one["name"] != given["name"]), given)
        found = ask_for_databases(
            house, wanted, expected=version, who=build_requester(request), reason=reason
        )
    else:
        domains = [line.strip().lower() for line in given["domains"].splitlines() if line.strip()]
        server = {**given, "domains": domains or None}
        found = ask_for_mail(house, server, expected=version, who=build_requester(request), reason=reason)
    return isinstance(found, ToolProposal)


def _remove_database(request: PageRequest) -> HttpResponse:
    """Remove a database, so that tools no longer query it."""
    reason, name = request.POST.get("reason", "").strip()[:500], request.POST.get("name", "")
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
        return _render_destinations_page(request, status=422)
    version, listed = _list_databases(request)
    others = tuple(one for one in listed if one["name"] != name)
    house = request.member.tenant.id
    try:
        found = ask_for_databases(
            house, others, expected=version, who=build_requester(request), reason=reason
        )
    except (Stale, ProposalOpen) as error:
        messages.error(request, str(error))
        return _render_destinations_page(request, status=412 if isinstance(error, Stale) else 409)
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, f"No tool asks {name} any more.")
    return redirect("outside")


def _list_databases(request: PageRequest) -> tuple[int, list[dict[str, Any]]]:
    """Return the version of the database list and the databases in force."""
    with tenant_transaction(request.member.tenant.id):
        now = outside_now("databases")
    return now.version, list(now.body.get("databases", ()))


def add_form_errors(form: forms.Form, error: InterlockError) -> None:
    """Add the error to the field it concerns, or to the form as a whole."""
    if not isinstance(error, InvalidInput):
        form.add_error(None, str(error))
        return
    for found in error.data["errors"]:
        parts = [part for part in found["pointer"].split("/") if part and not part.isdigit()]
        field = parts[-1] if parts and parts[-1] in form.fields else None
        form.add_error(field, found["detail"])


def _render_destinations_page(
    request: PageRequest, given: dict[str, forms.Form] | None = None, *, status: int = 200
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        now = {kind: outside_now(kind) for kind in KINDS}
        before = {kind: outside_before(kind) for kind in KINDS}
        server, listed = mail_server(), get_allowed_databases().databases
        blank = {
            "web": WebForm(
                auto_id="web_%s",
                initial={"allow": "\n".join(now["web"].body.get("allow", ())), "version": now["web"].version},
            ),
            "databases": DatabaseForm(
                auto_id="databases_%s", initial={"version": now["databases"].version}
            ),
            "mail": MailForm(auto_id="mail_%s", initial=_mail_initial(now["mail"].body, now["mail"].version)),
        }  # fmt: skip
        context = {
            "now": now,
            "before": before,
            "forms": blank | (given or {}),
            "wrong": set(given or {}),
            "allow": now["web"].body.get("allow", []),
            "databases": [_build_database_row(one) for one in listed],
            "server": server,
            "may_admin": request.member.may(Scope.ADMIN),
            "names": names_of([one.by for rows in before.values() for one in rows]),
        }
        return render(request, "tools/outside.html", context, status=status)


def _build_database_row(one: Database) -> dict[str, Any]:
    return {"row": one, "origin": one.origin}


def _mail_initial(body: dict[str, Any], version: int) -> dict[str, Any]:
    return {**body, "domains": "\n".join(body.get("domains") or ()), "version": version}
