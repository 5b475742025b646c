"""GET /tools, GET and POST /tools/<name>: the registry and its settings by admins (R-UI-5, R-TOOL-4)."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from orchestrator.core.approval.errors import ProposalOpen
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.core.tools.guard_relaxation import describe_relaxations
from orchestrator.core.tools.tool_update import (
    ADJUSTABLE,
    ToolChange,
    asked_change,
    diff_tool_specs,
    with_tool_change,
)
from orchestrator.outbound.queries import circuits_of_tools
from orchestrator.policies.queries.policies import policy_now
from orchestrator.policies.views.policy_labels import rule_in_words
from orchestrator.tools.actions.change_requests import ask_to_change
from orchestrator.tools.actions.schema_drift import clear_drift
from orchestrator.tools.gateways.availability import (
    Readiness,
    assess_tool_readiness,
    list_missing_dependencies,
    missing_isolation,
)
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.relaxation_proposals import tool_proposals
from orchestrator.tools.queries.tool_servers import WARNED_BEFORE, quarantined_names, servers_now
from orchestrator.tools.queries.tools import (
    ToolNow,
    Version,
    count_tool_use,
    describe_change_impact,
    live_runs_of,
    tool_now,
    tools_now,
    used_by,
    versions_of,
)
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from tenancy.core.errors import InvalidInput, Stale
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.rest.serializer_fields import path_name
from tenancy.web.page_auth import PageRequest, check_scopes, require_member

POLICIES = (
    ("by_risk", "By risk class: network and above, and whatever cannot be taken back"),
    ("always", "Always"),
    ("never", "Never (only below network, and only what can be taken back)"),
)
WORDS = {
    Risk.READ_ONLY: "read only: changes nothing",
    Risk.LOCAL_WRITE: "local write: changes what can be undone here",
    Risk.NETWORK: "network: has an effect outside",
    Risk.DELEGATED: "delegated: acts in somebody's name",
    Risk.DESTRUCTIVE: "destructive: money, or no way back",
}


class ToolForm(forms.Form):
    """The settings of a tool that an admin may change, and the reason."""

    risk = forms.ChoiceField(label="Risk class", choices=[(risk.value, word) for risk, word in WORDS.items()])
    approval = forms.ChoiceField(label="A person decides", choices=POLICIES)
    scopes = forms.MultipleChoiceField(
        label="Scopes that the submitter must hold", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(scope.value, scope.value) for scope in Scope],
    )  # fmt: skip
    price_usd = forms.DecimalField(
        label="Price a call, US$", required=False, help_text="Empty: as it is.",
        min_value=0, max_value=10_000, decimal_places=9, max_digits=14,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip
    rate_per_minute = forms.IntegerField(label="Calls a minute and run", min_value=1, max_value=100_000)
    timeout_ms = forms.IntegerField(label="Timeout, ms", min_value=1, max_value=600_000)
    max_retries = forms.IntegerField(label="Attempts after the first", min_value=0, max_value=10)
    max_result_chars = forms.IntegerField(label="Characters of a result", min_value=100, max_value=1_000_000)
    reason = forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    tag = forms.CharField(widget=forms.HiddenInput)

    def change(self) -> ToolChange:
        """Return the requested change.

        Raises: InvalidInput.
        """
        return asked_change({name: self.cleaned_data[name] for name in ADJUSTABLE})


class SwitchForm(forms.Form):
    """Enable or disable a tool, with the reason."""

    enabled = forms.ChoiceField(choices=[("on", "on"), ("off", "off")])
    reason = forms.CharField(max_length=500)


@require_safe
@require_member(Scope.READ)
def show_tools_page(request: PageRequest) -> HttpResponse:
    """Render every tool of the tenant."""
    house, may_inspect = request.member.tenant.id, request.member.may(Scope.INSPECT)
    with tenant_transaction(house):
        users, used = used_by(), count_tool_use(house, database_now())
        shown, circuits = tools_now(house), circuits_of_tools(database_now())
        ready = _assess_readiness([tool.spec for tool in shown])
        missing, bare = {**ready.left_out, **list_missing_dependencies()}, missing_isolation()
        waiting, unseen = quarantined_names(), sum(one.states.get("quarantined", 0) for one in servers_now())
        rows = [
            {
                "tool": tool,
                "source": _describe_source(tool.spec, whole=may_inspect),
                "quarantined": waiting.get(tool.spec.name),
                "users": users.get(tool.spec.name, ()),
                "use": used.get(tool.spec.name),
                "raised": any(stop.scope == "risk" for stop in tool.stops),
                "lacks": missing.get(tool.spec.name, ""),
                "soon": ready.cautions.get(tool.spec.name, ""),
                "bare": bare.get(tool.spec.name, ""),
                "circuit": circuits.get(tool.spec.name),
            }
            for tool in shown
        ]
        waiting_changes = len(tool_proposals()) if may_inspect else 0
    context = {
        "rows": rows, "unseen": unseen, "proposed": waiting_changes, "may_inspect": may_inspect,
    }  # fmt: skip
    return render(request, "tools/list.html", context)


def _assess_readiness(specs: list[ToolSpec]) -> Readiness:
    """Assess the readiness of the tools for a run that starts within a week."""
    now = database_now()
    return assess_tool_readiness(specs, now, now + WARNED_BEFORE)


def _describe_source(spec: ToolSpec, *, whole: bool) -> str:
    """Describe the origin of a tool; without `whole`, names of external servers are left out."""
    if spec.name in shipped_tools():
        return "built in"
    if spec.remote is None:
        return "published here"
    if not whole:
        return "a server" if spec.remote.kind == "mcp" else "a request"
    return f"server {spec.remote.server}" if spec.remote.kind == "mcp" else f"request to {spec.remote.origin}"


def _list_step_up_areas(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Return the money area for a change of a tool; none for a switch, a drift clearance or a preview.

    A change sets the price of a call, and how many people decide about which amount.
    """
    looks = {"enabled", "drift", "preview"} & set(request.POST)
    return () if looks else (Area.MONEY,)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ, asks=_list_step_up_areas)
def show_tool_page(request: PageRequest, name: str) -> HttpResponse:
    """Render one tool. A POST changes it, switches it, clears its drift mark or previews a change."""
    house = request.member.tenant.id
    path_name(name)
    if request.method != "POST":
        with tenant_transaction(house):
            return _render_tool_page(request, tool_now(house, name))
    check_scopes(request.member, Scope.ADMIN)
    if "enabled" in request.POST:
        return _submit_tool_switch(request, name)
    if "drift" in request.POST:
        return _submit_drift_clearance(request, name)
    return _submit_tool_change(request, name)


def _submit_drift_clearance(request: PageRequest, name: str) -> HttpResponse:
    """Clear the drift mark of a tool after an administrator has reviewed it (R-TOOL-14)."""
    house, reason = request.member.tenant.id, request.POST.get("reason", "").strip()[:500]
    if not reason:
        with tenant_transaction(house):
            messages.error(request, "Say why: the reason stands in the audit log.")
            return _render_tool_page(request, tool_now(house, name), status=422)
    clear_drift(house, name, by=request.member.principal, reason=reason)
    messages.success(request, f"The mark on {name} is off.")
    return redirect("tool", name=name)


def _submit_tool_change(request: PageRequest, name: str) -> HttpResponse:
    house, form = request.member.tenant.id, ToolForm(request.POST)
    with tenant_transaction(house):
        now = tool_now(house, name)
        if not form.is_valid():
            return _render_tool_page(request, now, form=form, status=422)
        try:
            after = with_tool_change(now.spec, form.change())
        except InvalidInput as error:
            _add_form_errors(form, error)
            return _render_tool_page(request, now, form=form, status=422)
        if "preview" in request.POST:
            was, is_now = diff_tool_specs(now.spec, after)
            preview = {"before": was, "after": is_now, "lines": describe_change_impact(now, after),
                       "weaker": describe_relaxations(now.spec, after)}  # fmt: skip
            return _render_tool_page(request, now, form=form, preview=preview)
    try:
        done = ask_to_change(
            house, name, form.change(), who=build_requester(request), reason=form.cleaned_data["reason"],
            expected=form.cleaned_data["tag"],
        )  # fmt: skip
    except (ProposalOpen, Stale) as error:
        return _render_edit_conflict(request, name, form, error)
    if isinstance(done, ToolProposal):
        return redirect_to_change_requests(request)
    if done.spec.version == now.spec.version:
        messages.info(request, "Nothing was different, so nothing was changed.")
    else:
        messages.success(request, f"{name} is at version {done.spec.version} now.")
    return redirect("tool", name=name)


def _render_edit_conflict(
    request: PageRequest, name: str, form: ToolForm, error: ProposalOpen | Stale
) -> HttpResponse:
    """Render the form again with the current tool, after another person's change or proposal came first."""
    house = request.member.tenant.id
    with tenant_transaction(house):
        now = tool_now(house, name)
        if isinstance(error, ProposalOpen):
            form.add_error(None, str(error))
            return _render_tool_page(request, now, form=form, status=409)
        form.add_error(None, "Somebody changed this tool in the meantime. Below is your form; look again.")
        given = request.POST.copy()
        given["tag"] = now.tag
        form.data = given
        return _render_tool_page(request, now, form=form, status=412)


def _submit_tool_switch(request: PageRequest, name: str) -> HttpResponse:
    house, form = request.member.tenant.id, SwitchForm(request.POST)
    if not form.is_valid():
        with tenant_transaction(house):
            messages.error(request, "Say why: the reason stands in the audit log.")
            return _render_tool_page(request, tool_now(house, name), status=422)
    on = form.cleaned_data["enabled"] == "on"
    ask_to_change(
        house, name, ToolChange(enabled=on), who=build_requester(request), reason=form.cleaned_data["reason"]
    )  # fmt: skip
    messages.success(request, f"{name} is enabled again." if on else f"{name} takes no further call.")
    return redirect("tool", name=name)


def _add_form_errors(form: ToolForm, error: InvalidInput) -> None:
    for found in error.data["errors"]:
        field = found["pointer"].strip("/").split("/")[0]
        form.add_error(field if field in form.fields else None, found["detail"])


def _definition(spec: ToolSpec, *, whole: bool) -> dict[str, Any]:
    """Return the declaration of a version; without `whole`, its address and secret are left out."""
    return spec.model_dump(mode="json") | ({} if whole else {"remote": None})


def _changes(before: Version, now: Version, *, whole: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values that a version changed, before and after.

    Without `whole`, a change of the remote part is shown as "changed" only.
    """
    was, became = diff_tool_specs(before.spec, now.spec)
    if not whole and "remote" in was:
        was["remote"], became["remote"] = None, "changed"
    return was, became


def _render_tool_page(
    request: PageRequest,
    now: ToolNow,
    *,
    form: ToolForm | None = None,
    preview: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    house, name, may_inspect = request.member.tenant.id, now.spec.name, request.member.may(Scope.INSPECT)
    versions = versions_of(name)
    users = used_by().get(name, [])
    ready = _assess_readiness([now.spec])
    pairs = [
        {"version": one, "changes": _changes(before, one, whole=may_inspect) if before is not None else None}
        for one, before in zip(versions, [*versions[1:], None], strict=True)
    ]
    context = {
        "tool": now,
        "spec": now.spec,
        "definition": _definition(now.spec, whole=may_inspect),
        "may_inspect": may_inspect,
        "ruled": _list_reaching_rules(now.spec),
        "pairs": pairs,
        "users": users,
        "live": live_runs_of([user.slug for user in users]),
        "waiting": quarantined_names().get(name) if now.spec.remote is not None else None,
        "use": count_tool_use(house, database_now()).get(name),
        "circuit": circuits_of_tools(database_now()).get(name),
        "names": names_of([one.published_by for one in versions] + [stop.by for stop in now.stops]),
        "may_admin": request.member.may(Scope.ADMIN),
        "form": form or ToolForm(initial={**_build_initial_data(now), "tag": now.tag}),
        "preview": preview,
        "lacks": list_missing_dependencies().get(name, ""),
        "unset": ready.left_out.get(name, ""),
        "soon": ready.cautions.get(name, ""),
        "bare": missing_isolation().get(name, ""),
        "opened": form is not None,
    }
    return render(request, "tools/tool.html", context, status=status)


def _list_reaching_rules(spec: ToolSpec) -> list[dict[str, str]]:
    """List the provenance rules that can apply to this tool."""
    return [
        {"name": rule.name, "words": rule_in_words(rule)}
        for rule in policy_now().policy.rules
        if rule.reaches(spec.name, mutating=spec.is_mutating)
    ]


def _build_initial_data(now: ToolNow) -> dict[str, Any]:
    given = {name: getattr(now.spec, name) for name in ADJUSTABLE}
    return {**given, "risk": now.spec.risk.value, "scopes": list(now.spec.scopes)}
