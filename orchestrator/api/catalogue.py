"""Workflows and tools, as they are published."""

from typing import Any

import orjson
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from orchestrator.actions.publish import active_tools
from orchestrator.api.serializers import page_of, stamp
from orchestrator.models import WorkflowVersion
from tenancy.context import tenant
from tenancy.core.roles import Scope
from tenancy.doors import caller
from tenancy.permissions import requires


class WorkflowRow(serializers.Serializer[Any]):
    slug = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    tier = serializers.IntegerField()
    digest = serializers.CharField()
    published_at = serializers.DateTimeField()


class WorkflowField(WorkflowRow):
    """A workflow with its document."""

    source = serializers.DictField(child=serializers.JSONField())  # type: ignore[assignment]


class ToolField(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.IntegerField()
    description = serializers.CharField()
    risk = serializers.CharField()
    reversibility = serializers.CharField()
    needs_approval = serializers.BooleanField()
    input_schema = serializers.DictField(child=serializers.JSONField())
    output_schema = serializers.DictField(child=serializers.JSONField())


class Reading(APIView):
    """A door that only reads."""

    permission_classes: list[type[BasePermission]] = [requires(Scope.READ)]


class Workflows(Reading):
    """The published workflows."""

    @extend_schema(responses=page_of(WorkflowRow))
    def get(self, request: Request) -> Response:
        """The newest version of each."""
        with tenant(caller(request).tenant):
            rows = (
                WorkflowVersion.objects.filter(retired_at=None).order_by("slug", "-version").distinct("slug")
            )
            return Response({"results": [_row(row) for row in rows], "next": None, "previous": None})


class OneWorkflow(Reading):
    """One workflow."""

    @extend_schema(responses=WorkflowField)
    def get(self, request: Request, slug: str) -> Response:
        """Its newest version with the document it was compiled from."""
        with tenant(caller(request).tenant):
            row = WorkflowVersion.objects.filter(slug=slug, retired_at=None).order_by("-version").first()
            if row is None:
                raise NotFound
            return Response({**_row(row), "source": orjson.loads(bytes(row.body))})


class Tools(Reading):
    """The active tools."""

    @extend_schema(responses=page_of(ToolField))
    def get(self, request: Request) -> Response:
        """All of them, by name."""
        with tenant(caller(request).tenant):
            tools = active_tools()
        return Response(
            {"results": [_tool(tools[name]) for name in sorted(tools)], "next": None, "previous": None}
        )


class OneTool(Reading):
    """One tool."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, name: str) -> Response:
        """Its active version, whole."""
        with tenant(caller(request).tenant):
            found = active_tools().get(name)
        if found is None:
            raise NotFound
        return Response(found.model_dump(mode="json"))


def _row(row: WorkflowVersion) -> dict[str, Any]:
    return {
        "slug": row.slug, "version": row.version, "title": row.title, "tier": row.tier, "digest": row.digest,
        "published_at": stamp(row.published_at),
    }  # fmt: skip


def _tool(spec: Any) -> dict[str, Any]:
    names = ("name", "version", "description", "input_schema", "output_schema")
    shown = {name: getattr(spec, name) for name in names}
    return {
        **shown,
        "risk": spec.risk.value,
        "reversibility": spec.reversibility.value,
        "needs_approval": spec.needs_gate,
    }
