"""Workflows and tools, as they are published."""

from typing import Any

import orjson
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from orchestrator.actions.publish import active_tools
from orchestrator.api.serializers import ToolField, ToolRow, WorkflowField, WorkflowRow, stamp
from orchestrator.core.tool import ToolSpec
from orchestrator.models import WorkflowVersion
from tenancy.context import tenant
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.doors import caller
from tenancy.permissions import requires
from tenancy.shapes import known, page_of


class Reading(APIView):
    """A door that only reads."""

    permission_classes: list[type[BasePermission]] = [requires(Scope.READ)]


class Workflows(Reading):
    """The published workflows."""

    @extend_schema(operation_id="list_workflows", responses=page_of(WorkflowRow, "WorkflowPage"))
    def get(self, request: Request) -> Response:
        """The newest version of each, in one page."""
        with tenant(caller(request).tenant):
            rows = (
                WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
            )
            return Response({"results": [_row(row) for row in rows], "next": None, "previous": None})


class OneWorkflow(Reading):
    """One workflow."""

    @extend_schema(operation_id="get_workflow", responses=WorkflowField)
    def get(self, request: Request, slug: str) -> Response:
        """Its newest version with the document it was compiled from. Raises NotFound."""
        with tenant(caller(request).tenant):
            published = WorkflowVersion.objects.filter(slug=known(slug), retired_at=None)
            row = published.order_by("-version").first()
            if row is None:
                raise NotFound
            return Response({**_row(row), "document": orjson.loads(bytes(row.body))})


class Tools(Reading):
    """The active tools."""

    @extend_schema(operation_id="list_tools", responses=page_of(ToolRow, "ToolPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page."""
        with tenant(caller(request).tenant):
            tools = active_tools()
        return Response(
            {"results": [_tool(tools[name]) for name in sorted(tools)], "next": None, "previous": None}
        )


class OneTool(Reading):
    """One tool."""

    @extend_schema(operation_id="get_tool", responses=ToolField)
    def get(self, request: Request, name: str) -> Response:
        """Its active version, whole. Raises NotFound."""
        with tenant(caller(request).tenant):
            found = active_tools().get(name)
        if found is None:
            raise NotFound
        return Response({**_tool(found), "definition": found.model_dump(mode="json")})


def _row(row: WorkflowVersion) -> dict[str, Any]:
    return {
        "slug": row.slug, "version": row.version, "title": row.title, "tier": row.tier, "digest": row.digest,
        "published_at": stamp(row.published_at),
    }  # fmt: skip


def _tool(spec: ToolSpec) -> dict[str, Any]:
    """A tool of the active registry: what is switched off is not in it."""
    return {
        "name": spec.name, "version": spec.version, "description": spec.description,
        "risk_class": spec.risk.value, "reversibility": spec.reversibility.value,
        "approval_policy": spec.approval, "needs_approval": spec.needs_gate, "enabled": True,
        "input_schema": spec.input_schema, "output_schema": spec.output_schema,
    }  # fmt: skip
