"""GET /workflows, /workflows/<slug>; publishing and retiring (R-UI-6, R-GRAPH-4)."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from orchestrator.core.common.errors import CompileFailed
from orchestrator.core.readmodel.graph_layout import overlay_run_path
from orchestrator.publishing.actions.workflows import compile_source, publish_source, retire_workflow
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.publishing.queries.workflows import (
    boundary_of,
    document_of,
    in_force,
    spec_of,
    versions_of,
)
from orchestrator.publishing.queries.workflows import (
    list_all_workflows as listed,
)
from orchestrator.workflow_yaml import LONGEST, format_workflow_yaml
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.rest.serializer_fields import path_name
from tenancy.web.page_auth import PageRequest, redirect_unless_post, require_member


class SourceForm(forms.Form):
    """A workflow's text, and why it is published."""

    source = forms.CharField(
        label="Workflow (YAML)", max_length=LONGEST, strip=False,
        widget=forms.Textarea(attrs={"rows": 28, "spellcheck": "false", "class": "mono", "wrap": "off"}),
    )  # fmt: skip
    reason = forms.CharField(
        label="Reason", max_length=500, required=False, help_text="Saved to the audit log."
    )


@require_safe
@require_member(Scope.READ)
def show_workflows_page(request: PageRequest) -> HttpResponse:
    """Every workflow of the tenant."""
    with tenant_transaction(request.member.tenant.id):
        rows = listed()
    return render(
        request, "workflows/list.html", {"rows": rows, "may_admin": request.member.may(Scope.ADMIN)}
    )


@require_safe
@require_member(Scope.READ)
def show_workflow_page(request: PageRequest, slug: str) -> HttpResponse:
    """One version of a workflow (`?version=`, the one in force by itself), and what `?against=` differs."""
    with tenant_transaction(request.member.tenant.id):
        versions = versions_of(path_name(slug))
        shown = _select_version(versions, request.GET.get("version")) or in_force(versions) or versions[0]
        against = _select_version(versions, request.GET.get("against"))
        spec = spec_of(shown)
        boundary = boundary_of(spec.boundary)
        context = {
            "slug": slug,
            "shown": shown,
            "force": in_force(versions),
            "versions": versions,
            "against": against,
            "spec": spec,
            "picture": overlay_run_path(spec),
            "source": format_workflow_yaml(document_of(shown)),
            "before": format_workflow_yaml(document_of(against)) if against is not None else "",
            "boundary": boundary.model_dump(mode="json") if boundary is not None else None,
            "names": names_of(version.published_by for version in versions),
            "may_admin": request.member.may(Scope.ADMIN),
            "may_submit": request.member.may(Scope.SUBMIT),
        }
        return render(request, "workflows/workflow.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@require_member(Scope.ADMIN)
def show_publish_workflow_page(request: PageRequest) -> HttpResponse:
    """A form for a workflow's text: compile it, or publish it. A faulty one comes back with its faults."""
    if request.method != "POST":
        return render(
            request, "workflows/publish.html", {"form": SourceForm(initial=_build_initial_source(request))}
        )
    form = SourceForm(request.POST)
    if not form.is_valid():
        return render(request, "workflows/publish.html", {"form": form}, status=422)
    house, text = request.member.tenant.id, form.cleaned_data["source"].replace("\r\n", "\n")
    try:
        if "compile" in request.POST:
            graph = compile_source(house, text)
            fine = {"form": form, "compiled": graph, "picture": overlay_run_path(graph)}
            return render(request, "workflows/publish.html", fine)
        done = publish_source(house, text, by=request.member.principal, reason=form.cleaned_data["reason"])
    except CompileFailed as error:
        context = {
            "form": form,
            "faults": error.data["faults"],
            "lines": _build_fault_excerpt(text, error.data["faults"]),
        }
        return render(request, "workflows/publish.html", context, status=422)
    said = "is published" if done.new else "stands already"
    messages.success(request, f"{done.version.slug} version {done.version.version} {said}.")
    return redirect("workflow", slug=done.version.slug)


@redirect_unless_post("workflow", "slug")
@require_member(Scope.ADMIN)
def submit_workflow_retirement(request: PageRequest, slug: str, number: int) -> HttpResponse:
    """Take a version out of choice."""
    reason = request.POST.get("reason", "").strip()[:500]
    if not reason:
        messages.error(request, "Say why: the reason stands in the audit log.")
    else:
        retire_workflow(
            request.member.tenant.id, path_name(slug), number, by=request.member.principal, reason=reason
        )
        messages.success(request, f"{slug} version {number} is retired. Its runs go on.")
    return redirect("workflow", slug=slug)


def _build_initial_source(request: PageRequest) -> dict[str, str]:
    """The text to begin with: that of the workflow `?from=`, in force."""
    if not (slug := request.GET.get("from", "")):
        return {}
    with tenant_transaction(request.member.tenant.id):
        versions = versions_of(path_name(slug))
        return {"source": format_workflow_yaml(document_of(in_force(versions) or versions[0]))}


def _select_version(versions: list[WorkflowVersion], text: str | None) -> WorkflowVersion | None:
    """The version of that number; None where none is asked for. Raises NotFound."""
    if not text:
        return None
    found = next((version for version in versions if str(version.version) == text), None)
    if found is None:
        raise NotFound
    return found


def _build_fault_excerpt(text: str, faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines with faults and two around each, with what is wrong in them."""
    at: dict[int, list[dict[str, Any]]] = {}
    for found in faults:
        at.setdefault(found["line"] or 1, []).append(found)
    near = {line + by for line in at for by in (-2, -1, 0, 1, 2)}
    return [
        {"number": number, "text": line, "faults": at.get(number, []), "gap": number - 1 not in near}
        for number, line in enumerate(text.split("\n"), 1)
        if number in near
    ]
