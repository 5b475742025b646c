"""Workflows and tools: what is published, publishing, retiring, and what an admin sets (R-API-2)."""

from typing import Any

import orjson
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import ReasonBody, format_timestamp
from orchestrator.core.tools.tool_update import asked_change
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.publishing.actions.workflows import publish_document, publish_source, retire_workflow
from orchestrator.publishing.api.catalog_serializers import (
    ToolBody,
    ToolField,
    ToolRow,
    VersionRow,
    WorkflowBody,
    WorkflowField,
    WorkflowRow,
)
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.publishing.queries.workflows import in_force, versions_of
from orchestrator.tools.actions.change_requests import ask_to_change
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.tools import ToolNow, tool_now, tools_now
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import build_etag_header, expected_tag, get_caller, post_once, unless_known
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import page_of, path_name, validate_input
from traces.core.canonical import format_decimal

IN_LIMITS = ("timeout_ms", "max_retries", "rate_per_minute", "max_result_chars")


class ScopedAPIView(APIView):
    """A door that reads with one scope and writes with another."""

    reading, writing = make_scope_permission(Scope.READ), make_scope_permission(Scope.ADMIN)

    def get_permissions(self) -> list[BasePermission]:
        """READ for what only looks, ADMIN for what changes."""
        return [self.reading() if self.request.method in {"GET", "HEAD", "OPTIONS"} else self.writing()]


class Workflows(ScopedAPIView):
    """The published workflows."""

    @extend_schema(operation_id="list_workflows", responses=page_of(WorkflowRow, "WorkflowPage"))
    def get(self, request: Request) -> Response:
        """The newest version of each, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = (
                WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
            )
            return Response(
                {"results": [_serialize_workflow_row(row) for row in rows], "next": None, "previous": None}
            )

    @extend_schema(
        operation_id="publish_workflow",
        request=WorkflowBody,
        responses={201: WorkflowField, 200: WorkflowField},
    )
    def post(self, request: Request) -> Response:
        """Compile and publish: 201 with the new version, 200 with the one that stands already.

        Raises CompileFailed (422) with every fault under `data.faults`.
        """
        body = validate_input(WorkflowBody, request.data)
        if ("document" in body) == ("yaml" in body):
            detail = "Give either the document or its text in YAML."
            raise InvalidInput(errors=[{"pointer": "/document", "code": "required", "detail": detail}])
        return post_once(request, lambda: self._publish_workflow(request, body))

    def _publish_workflow(self, request: Request, body: dict[str, Any]) -> StoredResponse:
        who, reason = get_caller(request), body["reason"]
        if "yaml" in body:
            made = publish_source(who.tenant, body["yaml"], by=who.principal, reason=reason)
        else:
            made = publish_document(who.tenant, body["document"], by=who.principal, reason=reason)
        return StoredResponse(201 if made.new else 200, _serialize_workflow(made.version))


class OneWorkflow(ScopedAPIView):
    """One workflow."""

    @extend_schema(operation_id="get_workflow", responses=WorkflowField)
    def get(self, request: Request, slug: str) -> Response:
        """Its newest version with the document it was compiled from. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            row = in_force(versions_of(path_name(slug)))
            if row is None:
                raise NotFound
            return Response(_serialize_workflow(row))


class Versions(ScopedAPIView):
    """The versions of a workflow."""

    @extend_schema(
        operation_id="list_workflow_versions", responses=page_of(VersionRow, "WorkflowVersionPage")
    )
    def get(self, request: Request, slug: str) -> Response:
        """All of them, newest first, in one page. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [_serialize_workflow_version(row) for row in versions_of(path_name(slug))]
        return Response({"results": rows, "next": None, "previous": None})


class Retire(ScopedAPIView):
    """Taking a version out of choice."""

    @extend_schema(operation_id="retire_workflow_version", request=ReasonBody, responses={200: VersionRow})
    def post(self, request: Request, slug: str, number: str) -> Response:
        """The version with the time at which it was retired; its runs go on. Raises NotFound."""
        reason = validate_input(ReasonBody, request.data)["reason"]
        who = get_caller(request)
        if not (number.isascii() and number.isdigit() and len(number) < 9):
            raise NotFound
        wanted = int(number)

        def build_response() -> StoredResponse:
            row = retire_workflow(who.tenant, path_name(slug), wanted, by=who.principal, reason=reason)
            return StoredResponse(200, _serialize_workflow_version(row))

        return post_once(request, build_response)


class Tools(ScopedAPIView):
    """The tools."""

    @extend_schema(operation_id="list_tools", responses=page_of(ToolRow, "ToolPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page; disabled ones too."""
        who = get_caller(request)
        with tenant_transaction(who.tenant):
            tools = tools_now(who.tenant)
        return Response(
            {"results": [_serialize_tool(tool) for tool in tools], "next": None, "previous": None}
        )


class OneTool(ScopedAPIView):
    """One tool."""

    @extend_schema(
        operation_id="get_tool",
        responses={200: ToolField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )
    def get(self, request: Request, name: str) -> HttpResponseBase | Response:
        """Its newest version with an ETag that changes with it; where it is reached, and under which secret,
        only with the scope `inspect`. Raises NotFound."""
        who = get_caller(request)
        with tenant_transaction(who.tenant):
            found = tool_now(who.tenant, path_name(name))
        shown = serialize_tool_definition(found)
        if Scope.INSPECT.value not in who.scopes:
            shown["definition"]["remote"] = None
        return unless_known(request, shown, found.tag)

    @extend_schema(
        operation_id="change_tool", request=ToolBody, responses={200: ToolField, 202: ToolProposalField}
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change it: a new version. What guards it less waits for a second administrator, where there is one
        (202). With If-Match only the tool that was looked at.

        Raises NotFound, InvalidInput (400), ProposalOpen (409), Stale (412).
        """
        who, body = get_caller(request), validate_input(ToolBody, request.data)
        reason = body.pop("reason")
        given = {RENAMED.get(field, field): value for field, value in body.items() if field != "limits"}
        change = asked_change({**given, **body.get("limits", {})})
        found = ask_to_change(
            who.tenant,
            path_name(name),
            change,
            who=ChangeAuthor(principal=who.principal, owner=who.owner),
            reason=reason,
            expected=expected_tag(request),
        )
        if isinstance(found, ToolProposal):
            return Response(proposal_field(found), status=202)
        shown = serialize_tool_definition(found)
        return Response(shown, headers=build_etag_header(shown, found.tag))


RENAMED = {"risk_class": "risk", "approval_policy": "approval"}


def _serialize_workflow_row(row: WorkflowVersion) -> dict[str, Any]:
    return {
        "slug": row.slug, "version": row.version, "title": row.title, "tier": row.tier, "digest": row.digest,
        "published_at": format_timestamp(row.published_at),
    }  # fmt: skip


def _serialize_workflow_version(row: WorkflowVersion) -> dict[str, Any]:
    return {**_serialize_workflow_row(row), "retired_at": format_timestamp(row.retired_at)}


def _serialize_workflow(row: WorkflowVersion) -> dict[str, Any]:
    return {**_serialize_workflow_row(row), "document": orjson.loads(bytes(row.body))}


def _serialize_tool(tool: ToolNow) -> dict[str, Any]:
    spec = tool.spec
    return {
        "name": spec.name, "version": spec.version, "description": spec.description,
        "risk_class": spec.risk.value, "reversibility": spec.reversibility.value,
        "approval_policy": spec.approval, "needs_approval": spec.needs_gate, "enabled": tool.enabled,
        "stopped": tool.emergency_stop is not None, "scopes": list(spec.scopes),
        "price_usd": None if spec.price_usd is None else format_decimal(spec.price_usd),
        "limits": {name: getattr(spec, name) for name in IN_LIMITS},
        "input_schema": spec.input_schema, "output_schema": spec.output_schema,
    }  # fmt: skip


def serialize_tool_definition(tool: ToolNow) -> dict[str, Any]:
    """A tool with all that its newest version declares, as programs see it."""
    return {**_serialize_tool(tool), "definition": tool.spec.model_dump(mode="json")}
