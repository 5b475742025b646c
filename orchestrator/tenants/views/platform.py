"""GET /platform/…: tenants as platform administrators open, change, suspend and resume them (R-SEC-10).

These pages show no content of a tenant except counts, and the address that was invited from here.
"""

from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from budgets.core.ceilings import DEFAULT_TIER, TIERS
from orchestrator.tenants.actions.tenants import NewTenant, open_tenant, suspend_with_runs, update_tenant
from orchestrator.tenants.queries.tenants import count_runs_to_pause
from tenancy.actions.first_administrator import (
    AdministratorThere,
    FirstAdministrator,
    invite_first_administrator,
)
from tenancy.actions.tenants import CHANGEABLE, resume_tenant, tenant_tag
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.models import Tenant
from tenancy.people.platform_admins import (
    PAGE,
    Administrators,
    count_administrators,
    first_administrator_of,
    platform_entries,
)
from tenancy.platform_models import PlatformEntry
from tenancy.queries import tenant_by_slug
from tenancy.rest.serializer_fields import path_name
from tenancy.time_zones import ZONES
from tenancy.web.page_auth import redirect_unless_post, respond_with_problem
from tenancy.web.platform_pages import PlatformRequest, platform_page

AUTONOMY: Final = (
    (1, "1: direct response"),
    (2, "2: prompt chain"),
    (3, "3: deterministic workflow"),
    (4, "4: conditional graph"),
    (5, "5: supervised loop, every plan approved"),
    (6, "6: bounded loop"),
    (7, "7: open-ended"),
)
MEANWHILE = "Somebody changed the tenant in the meantime. Your form is below; look at it again."


class SettingsForm(forms.Form):
    """The name and the settings of a tenant."""

    name = forms.CharField(label="Name", max_length=200)
    time_zone = forms.ChoiceField(
        label="Time zone", choices=[(zone, zone) for zone in ZONES], initial="UTC",
        help_text="Its days and months begin there.",
    )  # fmt: skip
    tier = forms.ChoiceField(
        label="Price tier",
        choices=[(tier, f"{tier}: ${ceilings.daily_usd} a day") for tier, ceilings in TIERS.items()],
        initial=DEFAULT_TIER,
    )
    highest_autonomy_tier = forms.TypedChoiceField(
        label="Highest autonomy", choices=AUTONOMY, coerce=int, initial=6
    )


class InvitationForm(forms.Form):
    """The first administrator of a tenant."""

    administrator_name = forms.CharField(label="First administrator’s name", max_length=200)
    administrator = forms.EmailField(label="First administrator’s e-mail address", max_length=254)


class NewTenantForm(SettingsForm, InvitationForm):
    """A tenant to create."""

    slug = forms.CharField(
        label="Slug", max_length=50,
        help_text="Small letters, digits and hyphens. It never changes.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "none"}),
    )  # fmt: skip
    field_order = [
        "name", "slug", "time_zone", "tier", "highest_autonomy_tier", "administrator_name", "administrator",
    ]  # fmt: skip


class ChangeForm(SettingsForm):
    """A tenant's settings, the reason for their change, and the tag of the version that was viewed."""

    reason = forms.CharField(label="Reason", max_length=500, help_text="Stands in both audit logs.")
    tag = forms.CharField(widget=forms.HiddenInput, max_length=64)


def _change_form(row: Tenant, given: dict[str, Any] | None = None) -> ChangeForm:
    """Build the form of a tenant's settings.

    A current value is offered even if it is no longer available for a new choice.
    """
    stands: dict[str, Any] = {name: getattr(row, name) for name in CHANGEABLE}
    form = ChangeForm(given, initial={**stands, "tag": tenant_tag(row)})
    for name in ("time_zone", "tier"):
        field: Any = form.fields[name]
        if stands[name] not in dict(field.choices):
            field.choices = [(stands[name], stands[name]), *field.choices]
    return form


class SuspendForm(forms.Form):
    """The reason for the suspension of a tenant."""

    reason = forms.CharField(label="Reason", max_length=500, help_text="The tenant’s people read it.")


@require_http_methods(["GET", "HEAD", "POST"])
@platform_page
def show_tenants_page(request: PlatformRequest) -> HttpResponse:
    """Render every tenant, with a form that creates one."""
    if request.method != "POST":
        return _render_tenants_page(request, NewTenantForm())
    form = NewTenantForm(request.POST)
    if not form.is_valid():
        return _render_tenants_page(request, form, status=422)
    try:
        opened = open_tenant(
            NewTenant(**form.cleaned_data), by=request.platform, origin=_build_site_origin(request)
        )  # fmt: skip
    except InvalidInput as error:
        return _render_tenants_page(request, _with_faults(form, error), status=422)
    messages.success(request, f"The tenant {opened.tenant.slug} is open.")
    return _handed_over(request, opened.tenant, opened.administrator)


@require_http_methods(["GET", "HEAD", "POST"])
@platform_page
def one_tenant(request: PlatformRequest, tenant_slug: str) -> HttpResponse:
    """Render one tenant and its settings. A POST changes them."""
    row = _get_tenant(tenant_slug)
    if request.method != "POST":
        return _render_tenant_page(request, row)
    form = _change_form(row, request.POST.dict())
    if not form.is_valid():
        return _render_tenant_page(request, row, form=form, status=422)
    given = form.cleaned_data
    try:
        update_tenant(
            row.id, {name: given[name] for name in CHANGEABLE}, by=request.platform, reason=given["reason"],
            expected=given["tag"],
        )  # fmt: skip
    except InvalidInput as error:
        return _render_tenant_page(request, row, form=_with_faults(form, error), status=422)
    except Stale:
        row = _get_tenant(tenant_slug)
        form = _change_form(row, {**request.POST.dict(), "tag": tenant_tag(row)})
        form.add_error(None, MEANWHILE)
        return _render_tenant_page(request, row, form=form, status=412)
    messages.success(request, "The tenant is changed.")
    return redirect("platform-tenant", row.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@platform_page
def show_suspend_tenant_page(request: PlatformRequest, tenant_slug: str) -> HttpResponse:
    """Ask for confirmation with the number of runs that will pause. A POST suspends the tenant."""
    row = _get_tenant(tenant_slug)
    if row.suspended_at is not None:
        return redirect("platform-tenant", row.slug)
    form = SuspendForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        paused = suspend_with_runs(row.id, by=request.platform, reason=form.cleaned_data["reason"]) or 0
        messages.success(request, f"{row.slug} is suspended; {paused} run{'' if paused == 1 else 's'} pause.")
        return redirect("platform-tenant", row.slug)
    context = {"row": row, "form": form, "runs": count_runs_to_pause(row.id)}
    return render(request, "platform/suspend.html", context, status=422 if form.errors else 200)


@redirect_unless_post("platform-tenant", "tenant_slug")
@platform_page
def resume_suspended_tenant(request: PlatformRequest, tenant_slug: str) -> HttpResponse:
    """Let the members and keys of a suspended tenant act again."""
    row = _get_tenant(tenant_slug)
    resume_tenant(row.id, by=request.platform, reason=request.POST.get("reason", "").strip()[:500])
    messages.success(request, f"{row.slug} is open again. An operator of it resumes its paused runs.")
    return redirect("platform-tenant", row.slug)


@redirect_unless_post("platform-tenant", "tenant_slug")
@platform_page
def submit_administrator_invitation(request: PlatformRequest, tenant_slug: str) -> HttpResponse:
    """Invite the first administrator again, or a replacement, until one has signed in."""
    row, form = _get_tenant(tenant_slug), InvitationForm(request.POST)
    if not form.is_valid():
        return _render_tenant_page(request, row, invitation=form, status=422)
    given = form.cleaned_data
    try:
        found = invite_first_administrator(
            row.id, given["administrator"], given["administrator_name"], by=request.platform,
            origin=_build_site_origin(request),
        )  # fmt: skip
    except InvalidInput as error:
        form.add_error("administrator", error.data["errors"][0]["detail"])
        return _render_tenant_page(request, row, invitation=form, status=422)
    except AdministratorThere as error:
        return respond_with_problem(request, error)
    return _handed_over(request, row, found)


@require_safe
@platform_page
def show_platform_log_page(request: PlatformRequest) -> HttpResponse:
    """Render the actions of platform administrators, newest first."""
    start = _parse_start_offset(request)
    entries, more = platform_entries(start)
    context = {
        "entries": [(entry, _get_entry_subject(entry)) for entry in entries], "start": start,
        "following": start + PAGE if more else 0, "page_size": PAGE,
    }  # fmt: skip
    return render(request, "platform/log.html", context)


def _get_tenant(slug: str) -> Tenant:
    found = tenant_by_slug(path_name(slug))
    if found is None:
        raise NotFound
    return found


def _get_entry_subject(entry: PlatformEntry) -> str:
    """Return the subject of an entry: its recorded slug or e-mail address, else its object."""
    named = entry.after.get("slug") or entry.after.get("email") or entry.object
    return str(named)


def _parse_start_offset(request: HttpRequest) -> int:
    text = request.GET.get("start", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0


def _build_site_origin(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")


def _with_faults(form: forms.Form, error: InvalidInput) -> Any:
    """Add each error of a refused change to its form field, and return the form."""
    for fault in error.data["errors"]:
        name = fault["pointer"].removeprefix("/")
        form.add_error(name if name in form.fields else None, fault["detail"])
    return form


def _handed_over(request: PlatformRequest, row: Tenant, found: FirstAdministrator) -> HttpResponse:
    """Render the tenant's page with the sign-in link if one is to be shown, else redirect to the page.

    The link is shown once, and that is recorded.
    """
    person = found.invited.person
    if found.path:
        shown = {"person": person, "address": request.build_absolute_uri(found.path)}
        return _render_tenant_page(request, row, link=shown)
    said = (
        f"A link that sets the password is on its way to {person.email}."
        if found.mailed
        else f"{person.email} signs in as before."
    )
    messages.success(request, said)
    return redirect("platform-tenant", row.slug)


def _render_tenants_page(request: PlatformRequest, form: NewTenantForm, *, status: int = 200) -> HttpResponse:
    start = _parse_start_offset(request)
    found = list(Tenant.objects.order_by("name", "id")[start : start + PAGE + 1])
    rows = found[:PAGE]
    counts = count_administrators(request.platform.person, [row.id for row in rows])
    context = {
        "rows": [(row, counts.get(row.id, Administrators())) for row in rows], "form": form, "start": start,
        "following": start + PAGE if len(found) > PAGE else 0, "page_size": PAGE,
        "mailed": settings.INTERLOCK_SENDS_MAIL,
    }  # fmt: skip
    return render(request, "platform/tenants.html", context, status=status)


def _render_tenant_page(
    request: PlatformRequest,
    row: Tenant,
    *,
    form: ChangeForm | None = None,
    invitation: InvitationForm | None = None,
    link: Any = None,
    status: int = 200,
) -> HttpResponse:
    counts = count_administrators(request.platform.person, [row.id]).get(row.id, Administrators())
    first = first_administrator_of(row.id)
    context = {
        "row": row, "counts": counts, "shown": link, "first": first,
        "form": form or _change_form(row),
        "invitation": invitation or InvitationForm(initial={"administrator": first}),
        "may_invite": counts.total == counts.waiting and row.suspended_at is None,
    }  # fmt: skip
    return render(request, "platform/tenant.html", context, status=status)
