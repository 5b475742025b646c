"""Boundaries: what is published, publishing, and one more tool (R-API-3, R-GRAPH-11)."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import format_timestamp
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.policies.actions.boundaries import (
    BoundaryPublication,
    ask_to_allow_tool,
    ask_to_publish_boundary,
    ask_to_retire_boundary,
    read_boundary_text,
)
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.policies.queries.boundaries import (
    boundaries_now,
    boundary_document,
    boundary_in,
    boundary_versions,
    newest_boundary,
    workflows_under,
)
from orchestrator.publishing.api.catalog import ScopedAPIView
from orchestrator.publishing.api.catalog_serializers import RISKS
from orchestrator.publishing.models import BoundaryVersion
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.workflow_yaml import LONGEST
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller, post_once, unless_known
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.serializer_fields import (
    StrictCharField,
    StrictSerializer,
    page_of,
    path_name,
    validate_input,
)


class BoundaryRow(serializers.Serializer[Any]):
    """A version of a boundary."""

    slug = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField(allow_blank=True)
    digest = serializers.CharField()
    published_at = serializers.DateTimeField()
    published_by = serializers.UUIDField(allow_null=True)
    retired_at = serializers.DateTimeField(allow_null=True)


class BoundaryField(BoundaryRow):
    """A boundary with its document and the published workflows that name it."""

    document = serializers.DictField(child=serializers.JSONField(allow_null=True))
    workflows = serializers.ListField(child=serializers.CharField())


class BoundaryBody(StrictSerializer):
    """A boundary: its document, or the document's text in YAML. `profile` in it fills in the limits that
    `budget` leaves out."""

    one_of = (("document",), ("yaml",))

    document = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    yaml = StrictCharField(max_length=LONGEST, required=False, trim_whitespace=False)
    reason = StrictCharField(max_length=500)


class AllowBody(StrictSerializer):
    """A tool (`crm.find`) or a family of tools (`crm.*`), and the highest risk class at which it is
    called."""

    tool = StrictCharField(max_length=64)
    risk_ceiling = serializers.ChoiceField(choices=RISKS)
    reason = StrictCharField(max_length=500)


class RetireBody(StrictSerializer):
    """Why a version is retired."""

    reason = StrictCharField(max_length=500)


ANSWERS: dict[int, Any] = {201: BoundaryField, 200: BoundaryField, 202: ToolProposalField}


class Boundaries(ScopedAPIView):
    """The boundaries of the tenant."""

    @extend_schema(operation_id="list_boundaries", responses=page_of(BoundaryRow, "BoundaryPage"))
    def get(self, request: Request) -> Response:
        """The version of each that is in force, by its slug, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [_serialize_boundary_row(one.row) for one in boundaries_now()]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="publish_boundary", request=BoundaryBody, responses=ANSWERS)
    def post(self, request: Request) -> Response:
        """Publish: 201 with the new version, 200 with the one that stands already. What widens what runs may
        do waits for a second administrator, where there is one (202). With If-Match only over the version
        that was looked at. Runs that were admitted before keep theirs.

        Raises InvalidInput (400) naming each wrong field, ProposalOpen (409), Stale (412).
        """
        body, who = validate_input(BoundaryBody, request.data), get_caller(request)
        if ("document" in body) == ("yaml" in body):
            detail = "Give either the document or its text in YAML."
            raise InvalidInput(errors=[{"pointer": "/document", "code": "required", "detail": detail}])
        document = body["document"] if "document" in body else read_boundary_text(body["yaml"])
        expected = expected_version(request)
        asking = ChangeAuthor(principal=who.principal, owner=who.owner)

        def build_response() -> StoredResponse:
            found = ask_to_publish_boundary(
                who.tenant, document, expected=expected, who=asking, reason=body["reason"]
            )
            return _build_publication_response(found, request)

        return post_once(request, build_response)


class OneBoundary(ScopedAPIView):
    """One boundary."""

    @extend_schema(
        operation_id="get_boundary",
        responses={200: BoundaryField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase | Response:
        """The version of it that is in force with its document, and an ETag that changes with it. Raises
        NotFound, also where every version is retired."""
        with tenant_transaction(get_caller(request).tenant):
            row = newest_boundary(path_name(slug))
            if row is None:
                raise NotFound
            shown = _serialize_boundary(row)
        return unless_known(request, shown, str(row.version))


class BoundaryVersions(ScopedAPIView):
    """The versions of a boundary."""

    @extend_schema(
        operation_id="list_boundary_versions", responses=page_of(BoundaryField, "BoundaryVersionPage")
    )
    def get(self, request: Request, slug: str) -> Response:
        """All of them with their documents, retired ones too, newest first, in one page. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [_serialize_boundary(row) for row in boundary_versions(path_name(slug))]
        return Response({"results": rows, "next": None, "previous": None})


class RetireBoundary(ScopedAPIView):
    """Taking a version out of choice."""

    @extend_schema(
        operation_id="retire_boundary_version", request=RetireBody,
        responses={200: BoundaryField, 202: ToolProposalField},
    )  # fmt: skip
    def post(self, request: Request, slug: str, number: str) -> Response:
        """The version with the time at which it was retired; its runs go on. Where the version that is left
        lets runs do more it waits for a second administrator, where there is one (202). Raises NotFound,
        ProposalOpen (409)."""
        body, who = validate_input(RetireBody, request.data), get_caller(request)
        if not (number.isascii() and number.isdigit() and len(number) < 9):
            raise NotFound
        asking = ChangeAuthor(principal=who.principal, owner=who.owner)

        def build_response() -> StoredResponse:
            found = ask_to_retire_boundary(
                who.tenant, path_name(slug), int(number), who=asking, reason=body["reason"]
            )
            if isinstance(found, ToolProposal):
                return StoredResponse(202, proposal_field(found))
            with tenant_transaction(who.tenant):
                return StoredResponse(200, _serialize_boundary(found))

        return post_once(request, build_response)


class AllowTool(ScopedAPIView):
    """Allowing one more tool."""

    @extend_schema(operation_id="allow_tool", request=AllowBody, responses=ANSWERS)
    def post(self, request: Request, slug: str) -> Response:
        """Publish the boundary's newest version with this tool first among its tools. It waits for a second
        administrator, where there is one (202). Raises NotFound, InvalidInput (400), ProposalOpen (409)."""
        body, who = validate_input(AllowBody, request.data), get_caller(request)
        asking = ChangeAuthor(principal=who.principal, owner=who.owner)

        def build_response() -> StoredResponse:
            found = ask_to_allow_tool(
                who.tenant, path_name(slug), body["tool"], Risk(body["risk_ceiling"]), who=asking,
                reason=body["reason"],
            )  # fmt: skip
            return _build_publication_response(found, request)

        return post_once(request, build_response)


def boundary_field(found: BoundaryPublication) -> dict[str, Any]:
    """A published version as the API says it. In the tenant's context."""
    return _serialize_boundary(found.version)


def _build_publication_response(
    found: BoundaryPublication | ToolProposal, request: Request
) -> StoredResponse:
    if isinstance(found, ToolProposal):
        return StoredResponse(202, proposal_field(found))
    with tenant_transaction(get_caller(request).tenant):
        return StoredResponse(201 if found.new else 200, boundary_field(found))


def _serialize_boundary_row(row: BoundaryVersion) -> dict[str, Any]:
    return {
        "slug": row.slug, "version": row.version, "title": boundary_in(row).title, "digest": row.digest,
        "published_at": format_timestamp(row.published_at),
        "published_by": str(row.published_by) if row.published_by else None,
        "retired_at": format_timestamp(row.retired_at),
    }  # fmt: skip


def _serialize_boundary(row: BoundaryVersion) -> dict[str, Any]:
    return {
        **_serialize_boundary_row(row),
        "document": boundary_document(row),
        "workflows": list(workflows_under(row.slug)),
    }
