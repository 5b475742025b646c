"""Pages of boundaries: list, detail, publication of a version, and allowing one more tool (R-GRAPH-11)."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from budgets.core.dimension import ABOUT, Dimension
from orchestrator.core.common.errors import ProposalOpen
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.policies.actions.boundaries import (
    BoundaryPublication,
    ask_to_allow_tool,
    ask_to_publish_boundary,
    ask_to_retire_boundary,
    preview_boundary,
    read_boundary_text,
    widenings_of_retirement,
)
from orchestrator.policies.queries.boundaries import (
    boundaries_now,
    boundaries_retired,
    boundary_document,
    boundary_in,
    boundary_versions,
    in_force_of,
    version_left,
    workflows_under,
)
from orchestrator.publishing.models import BoundaryVersion
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tools import tools_now
from orchestrator.tools.views.change_requests import build_requester, redirect_to_change_requests
from orchestrator.tools.views.tools import WORDS
from orchestrator.workflow_yaml import LONGEST, format_workflow_yaml
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.core.roles import Scope
from tenancy.core.sign_in.rules import Area
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.rest.serializer_fields import path_name
from tenancy.web.page_auth import PageRequest, check_scopes, redirect_unless_post, require_member

MEANWHILE = "Another version was published in the meantime. Your form is below; look at it again."
EXAMPLE = """slug: my-tools
title: My tools
profile: support
tools:
  - {name: "clock.*", risk_ceiling: read_only}
risk_ceiling: network
escalation_routes: {default: operations}
"""


class BoundaryForm(forms.Form):
    """A boundary's text, the reason for its publication, and the version the reader looked at."""

    source = forms.CharField(
        label="Boundary (YAML)", max_length=LONGEST, strip=False,
        widget=forms.Textarea(attrs={"rows": 28, "spellcheck": "false", "class": "mono", "wrap": "off"}),
    )  # fmt: skip
    reason = forms.CharField(label="Reason", max_length=500, help_text="Stands in the audit log.")
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)


class AllowForm(forms.Form):
    """One more tool for a boundary, or another ceiling for one of its tools."""

    tool = forms.CharField(
        label="Tool", max_length=64, help_text="A name, or a family such as crm.*",
        widget=forms.TextInput(attrs={"list": "known-tools", "autocomplete": "off"}),
    )  # fmt: skip
    risk_ceiling = forms.ChoiceField(
        label="Highest risk class", choices=[(risk.value, word) for risk, word in WORDS.items()],
        help_text="Whatever changes something still asks a person, as its risk class says.",
    )  # fmt: skip
    reason = forms.CharField(label="Reason", max_length=500, help_text="Stands in the audit log.")


@require_safe
@require_member(Scope.READ)
def show_boundaries_page(request: PageRequest) -> HttpResponse:
    """Render every boundary of the tenant."""
    with tenant_transaction(request.member.tenant.id):
        rows = [*boundaries_now(), *boundaries_retired()]
    return render(
        request, "boundaries/list.html", {"rows": rows, "may_admin": request.member.may(Scope.ADMIN)}
    )


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.READ)
def show_boundary_page(request: PageRequest, slug: str) -> HttpResponse:
    """Render one version of a boundary and its difference from the `?against=` version.

    `?version=` selects the version; the default is the newest. A POST allows one more tool.
    """
    if request.method != "POST":
        return _render_boundary_page(request, slug, AllowForm())
    check_scopes(request.member, Scope.ADMIN)
    form = AllowForm(request.POST)
    if not form.is_valid():
        return _render_boundary_page(request, slug, form, status=422)
    given = form.cleaned_data
    try:
        found = ask_to_allow_tool(
            request.member.tenant.id, path_name(slug), given["tool"].strip(), Risk(given["risk_ceiling"]),
            who=build_requester(request), reason=given["reason"],
        )  # fmt: skip
    except InvalidInput as error:
        for fault in error.data["errors"]:
            form.add_error("risk_ceiling" if fault["pointer"] == "/risk_ceiling" else "tool", fault["detail"])
        return _render_boundary_page(request, slug, form, status=422)
    except (Stale, ProposalOpen) as error:
        form.add_error(None, str(error))
        return _render_boundary_page(request, slug, form, status=409)
    return _respond_to_publication(request, found)


def _list_step_up_areas(request: PageRequest, places: Mapping[str, Any]) -> tuple[Area, ...]:
    """Return the money area for a publication, and no area for a preview.

    A boundary limits the spending of runs.
    """
    return () if "preview" in request.POST else (Area.MONEY,)


@redirect_unless_post("boundary", "slug")
@require_member(Scope.ADMIN, asks=(Area.MONEY,))
def submit_boundary_retirement(request: PageRequest, slug: str, number: int) -> HttpResponse:
    """Retire a version, or ask a second administrator if the retirement lets runs do more."""
    reason = request.POST.get("reason", "").strip()[:500]
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
        return redirect("boundary", slug=slug)
    try:
        found = ask_to_retire_boundary(
            request.member.tenant.id, path_name(slug), number, who=build_requester(request), reason=reason
        )
    except ProposalOpen as error:
        messages.error(request, str(error))
        return redirect("boundary", slug=slug)
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    messages.success(request, f"{slug} version {number} is retired. Its runs go on.")
    return redirect("boundary", slug=slug)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.ADMIN, asks=_list_step_up_areas)
def show_publish_boundary_page(request: PageRequest) -> HttpResponse:
    """Render the form for a boundary's text, preview its changes, or publish it.

    An invalid text is shown again with its errors.
    """
    if request.method != "POST":
        return _render_boundary_form(request, BoundaryForm(initial=_build_initial_data(request)))
    form = BoundaryForm(request.POST)
    if not form.is_valid():
        return _render_boundary_form(request, form, status=422)
    try:
        document = read_boundary_text(form.cleaned_data["source"].replace("\r\n", "\n"))
        if "preview" in request.POST:
            return _render_boundary_form(request, form, preview=_build_publication_preview(request, document))
        return _respond_to_publication(request, _request_publication(request, form, document))
    except InvalidInput as error:
        for fault in error.data["errors"]:
            form.add_error(None, f"{fault['pointer']}: {fault['detail']}")
        return _render_boundary_form(request, form, status=422)
    except (Stale, ProposalOpen) as error:
        stale = isinstance(error, Stale)
        form.add_error(None, MEANWHILE if stale else str(error))
        return _render_boundary_form(request, form, status=412 if stale else 409)


def _request_publication(
    request: PageRequest, form: BoundaryForm, document: dict[str, Any]
) -> BoundaryPublication | ToolProposal:
    given = form.cleaned_data
    return ask_to_publish_boundary(
        request.member.tenant.id, document, expected=given["version"], who=build_requester(request),
        reason=given["reason"],
    )  # fmt: skip


def _respond_to_publication(request: PageRequest, found: BoundaryPublication | ToolProposal) -> HttpResponse:
    if isinstance(found, ToolProposal):
        return redirect_to_change_requests(request)
    version = found.version
    said = f"{version.slug} version {version.version} is published, for runs to come."
    if found.new:
        messages.success(request, said)
    else:
        messages.info(request, "Nothing is different, so nothing was published.")
    return redirect("boundary", slug=version.slug)


def _build_publication_preview(request: PageRequest, document: dict[str, Any]) -> dict[str, Any]:
    """Return the documents before and after a publication, and the limits that it weakens."""
    looked = preview_boundary(request.member.tenant.id, document)
    before = boundary_document(looked.before) if looked.before is not None else {}
    return {"before": before, "after": _to_boundary_dict(looked.boundary), "weaker": looked.weaker}


def _to_boundary_dict(boundary: Boundary) -> dict[str, Any]:
    held: dict[str, Any] = boundary.model_dump(mode="json", exclude={"version"})
    return held


def _build_initial_data(request: PageRequest) -> dict[str, Any]:
    """Return the initial text: that of the boundary `?from=`, or an example."""
    if not (slug := request.GET.get("from", "")):
        return {"source": EXAMPLE}
    with tenant_transaction(request.member.tenant.id):
        versions = boundary_versions(path_name(slug))
        row = in_force_of(versions)
        source = format_workflow_yaml(boundary_document(row or versions[0]))
        return {"source": source, "version": 0 if row is None else row.version}


def _render_boundary_form(
    request: PageRequest, form: BoundaryForm, *, preview: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    return render(request, "boundaries/publish.html", {"form": form, "preview": preview}, status=status)


def _render_boundary_page(
    request: PageRequest, slug: str, form: AllowForm, *, status: int = 200
) -> HttpResponse:
    with tenant_transaction(request.member.tenant.id):
        versions = boundary_versions(path_name(slug))
        force = in_force_of(versions)
        shown = _select_version(versions, request.GET.get("version")) or force or versions[0]
        against = _select_version(versions, request.GET.get("against"))
        held = boundary_in(shown)
        tools = tools_now(request.member.tenant.id)
        context = {
            "slug": slug,
            "shown": shown,
            "force": force,
            "next": versions[0].version + 1,
            "versions": versions,
            "left": version_left(slug),
            "widens": bool(force is not None and widenings_of_retirement(force)),
            "against": against,
            "boundary": held,
            "limits": _list_boundary_limits(held),
            "workflows": workflows_under(slug),
            "before": boundary_document(against) if against is not None else None,
            "document": boundary_document(shown),
            "source": format_workflow_yaml(boundary_document(shown)),
            "names": names_of(version.published_by for version in versions),
            "more_tools": [tool.spec.name for tool in tools if held.grant_for(tool.spec.name) is None],
            "form": form,
            "may_admin": request.member.may(Scope.ADMIN),
        }
        return render(request, "boundaries/boundary.html", context, status=status)


def _list_boundary_limits(boundary: Boundary) -> list[dict[str, Any]]:
    """List each limit with a sentence about what it counts, in the order of the dimensions."""
    return [
        {"name": one.value, "about": ABOUT[one].sentence, "amount": boundary.budget.get(one.value)}
        for one in Dimension
        if one.value in boundary.budget
    ]


def _select_version(versions: list[BoundaryVersion], text: str | None) -> BoundaryVersion | None:
    """Return the version with this number, or None if no number is given.

    Raises: NotFound.
    """
    if not text:
        return None
    found = next((version for version in versions if str(version.version) == text), None)
    if found is None:
        raise NotFound
    return found
