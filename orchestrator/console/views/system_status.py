"""GET /system: emergency stops (R-SEC-9), circuits (R-BUDGET-13) and safety reviews (R-BUDGET-12)."""

from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from orchestrator.console.queries.system_status import ended_by, get_system_status, stop_of
from orchestrator.outbound.actions import reset_circuit, setting_now
from orchestrator.outbound.queries import CircuitSeen, circuit_now, circuits_now
from orchestrator.publishing.queries.workflows import list_workflow_slugs
from orchestrator.reviews.actions import safety_acknowledgement
from orchestrator.runs.actions import emergency_stop
from orchestrator.runs.gateways.broker_health import broker_answers
from orchestrator.runs.queries.safety_reviews import list_unreviewed_runs, own_among, to_review
from orchestrator.tools.gateways.sandbox import bubblewrap
from orchestrator.tools.queries.tools import DISABLED, tools_now
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import (
    PageRequest,
    check_scopes,
    mark_unattended,
    redirect_unless_post,
    require_member,
)

EVERYTHING = "tenant:"
LONGEST = 500
CLOSED = "The circuit is closed; the next call goes out."


class StopForm(forms.Form):
    """The target of a stop and its reason.

    `sure` is the confirmed target. Unless it equals `what`, a confirmation is asked for.
    """

    what = forms.ChoiceField(label="Stop")
    reason = forms.CharField(label="Reason", max_length=500, help_text="Saved to the audit log.")
    sure = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, given: object = None, *, choices: list[tuple[str, str]]) -> None:
        super().__init__(given)  # type: ignore[arg-type]
        self.fields["what"].choices = choices  # type: ignore[attr-defined]

    def clean_reason(self) -> str:
        """Return the reason without the prefix that marks stops of a tool's own switch.

        Only that switch lifts a stop with the prefix.
        """
        text: str = self.cleaned_data["reason"]
        return text.removeprefix(DISABLED.strip()).strip() or text.strip(": ")


class StopConfirmation:
    """The confirmation of a stop: its target, its reason and the number of runs it ends.

    The number is None for the stop of a tool, which by itself ends no run.
    """

    def __init__(self, request: PageRequest, form: StopForm, *, ends: int | None) -> None:
        self.what: str = form.cleaned_data["what"]
        self.reason: str = form.cleaned_data["reason"]
        self.named = dict(_list_stop_choices(request))[self.what]
        self.ends = ends


@require_safe
@require_member(Scope.READ)
def show_system_page(request: PageRequest) -> HttpResponse:
    """Render the parts of the system and the stops in force."""
    with tenant_transaction(request.member.tenant.id):
        return _render_system_page(request, StopForm(choices=_list_stop_choices(request)))


@redirect_unless_post("system")
@require_member(Scope.OPERATE)
def submit_emergency_stop(request: PageRequest) -> HttpResponse:
    """Put a stop in force before the next effect of any run it concerns.

    A confirmation with the number of runs it ends is asked for first.
    """
    house = request.member.tenant.id
    with tenant_transaction(house):
        form = StopForm(request.POST, choices=_list_stop_choices(request))
        if not form.is_valid():
            return _render_system_page(request, form, status=422)
        scope, _, target = form.cleaned_data["what"].partition(":")
        if form.cleaned_data["sure"] != form.cleaned_data["what"]:
            return _render_system_page(
                request, form, sure=StopConfirmation(request, form, ends=ended_by(scope, target))
            )
    emergency_stop.stop_everything(
        scope, tenant_id=house, target=target, by=request.member.principal, reason=form.cleaned_data["reason"]
    )
    messages.success(request, "The stop is in force.")
    return redirect("system")


@redirect_unless_post("system")
@require_member(Scope.OPERATE)
def submit_stop_lift(request: PageRequest, stop_id: UUID) -> HttpResponse:
    """Lift one of the tenant's own stops. A stop that a tool's own page has set is lifted there."""
    house = request.member.tenant.id
    reason = request.POST.get("reason", "").strip()[:500]
    with tenant_transaction(house):
        found = stop_of(house, stop_id)
    if found is None:
        raise NotFound
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
    elif emergency_stop.lift_stop(stop_id, tenant_id=house, by=request.member.principal, reason=reason):
        messages.success(request, "The stop is lifted.")
    return redirect("system")


@require_safe
@require_member(Scope.READ)
@mark_unattended
def show_circuits_table(request: PageRequest) -> HttpResponse:
    """Render the table of circuits only. The page fetches it repeatedly while it is open."""
    with tenant_transaction(request.member.tenant.id):
        return render(request, "tools/_circuits.html", _build_circuits_context())


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_circuit_page(request: PageRequest, circuit_id: UUID) -> HttpResponse:
    """Render one circuit. A POST closes it manually, with a reason."""
    house, fault = request.member.tenant.id, ""
    if request.method == "POST":
        check_scopes(request.member, Scope.ADMIN)
        reason = request.POST.get("reason", "").strip()[:LONGEST]
        if reason:
            row = reset_circuit(house, circuit_id, by=request.member.principal, reason=reason)
            with tenant_transaction(house):
                messages.success(request, _format_reset_message(circuit_now(row.id, database_now())))
            return redirect("system")
        fault = "Say why: the reason stands in the audit log."
    with tenant_transaction(house):
        context = {
            "one": circuit_now(circuit_id, database_now()), "fault": fault, "setting": setting_now(),
            "may_admin": request.member.may(Scope.ADMIN),
        }  # fmt: skip
    return render(request, "tools/circuit.html", context, status=422 if fault else 200)


@redirect_unless_post("system")
@require_member(Scope.ADMIN)
def submit_safety_review(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Record the finding of a review of a run that a safety rule closed."""
    house, finding = request.member.tenant.id, request.POST.get("finding", "").strip()[:LONGEST]
    with tenant_transaction(house):
        to_review(run_id)
    if not finding:
        messages.error(request, "Say what was found: it stands in the audit log.")
    else:
        safety_acknowledgement.record_safety_review(
            house, run_id, by=request.member.principal, finding=finding
        )
        messages.success(request, "The review is written down.")
    return redirect("system")


def _format_reset_message(found: CircuitSeen) -> str:
    """Describe the state of a circuit after its manual reset or probe."""
    if found.state == "closed":
        return CLOSED
    if found.next_probe is not None and not found.probing:
        return "It was tried a moment ago and is left alone again; one call tries it after the cooldown."
    return "One call tries it now; a good answer closes it."


def _build_circuits_context() -> dict[str, object]:
    return {"circuits": circuits_now(database_now()), "setting": setting_now()}


def _list_stop_choices(request: PageRequest) -> list[tuple[str, str]]:
    house = request.member.tenant
    found = [("", "Choose what to stop"), (EVERYTHING, f"Everything in {house.name}")]
    found += [(f"workflow:{slug}", f"Workflow {slug}") for slug in list_workflow_slugs()]
    found += [(f"tool:{tool.spec.name}", f"Tool {tool.spec.name}") for tool in tools_now(house.id)]
    return found


def _render_system_page(
    request: PageRequest, form: StopForm, *, sure: StopConfirmation | None = None, status: int = 200
) -> HttpResponse:
    me, seen, waiting = (
        request.member,
        get_system_status(request.member.tenant.id, database_now()),
        list_unreviewed_runs(),
    )
    context = {
        **_build_circuits_context(),
        "to_review": waiting,
        "own": own_among(waiting.runs, me.principal, me.owner) if waiting.runs else set(),
        "review_command": safety_acknowledgement.COMMAND,
        "seen": seen,
        "switch": DISABLED,
        "broker": broker_answers(),
        "isolation": bubblewrap.explain_unavailability(),
        "bare": settings.INTERLOCK_SCRIPT_ISOLATION != "required",
        "version": settings.INTERLOCK_VERSION,
        "names": names_of(one.by for one in seen.stops),
        "form": form,
        "sure": sure,
        "may_operate": request.member.may(Scope.OPERATE),
        "may_admin": request.member.may(Scope.ADMIN),
    }
    return render(request, "tools/system.html", context, status=status)
