"""Boundaries: what is published, publishing, and one more tool (R-API-3, R-GRAPH-11)."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.actions.boundaries import (
    BoundaryPublication,
    ask_to_allow_tool,
    ask_to_publish_boundary,
    ask_to_retire_boundary,
    read_boundary_text,
)
from orchestrator.actions.dual_control import Who
from orchestrator.api.catalog import ByScope
from orchestrator.api.catalog_serializers import RISKS
from orchestrator.api.change_requests import ToolProposalField, proposal_field
from orchestrator.api.serializers import stamp
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.models import BoundaryVersion, ToolProposal
from orchestrator.queries.boundaries import (
    boundaries_now,
    boundary_document,
    boundary_in,
    boundary_versions,
    newest_boundary,
    workflows_under,
)
from orchestrator.workflow_yaml import LONGEST
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.db.tenant_context import tenant
from tenancy.rest.api_helpers import caller, expected_version, post_once, unless_known
from tenancy.rest.idempotency import Answer
from tenancy.rest.serializer_fields import Exact, Text, asked, known, page_of


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


class BoundaryBody(Exact):
    """A boundary: its document, or the document's text in YAML. `profile` in it fills in the limits that
    `budget` leaves out."""

    one_of = (("document",), ("yaml",))

    document = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    yaml = Text(max_length=LONGEST, required=False, trim_whitespace=False)
    reason = Text(max_length=500)


class AllowBody(Exact):
    """A tool (`crm.find`) or a family of tools (`crm.*`), and the highest risk class at which it is
    called."""

    tool = Text(max_length=64)
    risk_ceiling = serializers.ChoiceField(choices=RISKS)
    reason = Text(max_length=500)


class RetireBody(Exact):
    """Why a version is retired."""

    reason = Text(max_length=500)


ANSWERS: dict[int, Any] = {201: BoundaryField, 200: BoundaryField, 202: ToolProposalField}


class Boundaries(ByScope):
    """The boundaries of the tenant."""

    @extend_schema(operation_id="list_boundaries", responses=page_of(BoundaryRow, "BoundaryPage"))
    def get(self, request: Request) -> Response:
        """The version of each that is in force, by its slug, in one page."""
        with tenant(caller(request).tenant):
            rows = [_row(one.row) for one in boundaries_now()]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="publish_boundary", request=BoundaryBody, responses=ANSWERS)
    def post(self, request: Request) -> Response:
        """Publish: 201 with the new version, 200 with the one that stands already. What widens what runs may
        do waits for a second administrator, where there is one (202). With If-Match only over the version
        that was looked at. Runs that were admitted before keep theirs.

        Raises InvalidInput (400) naming each wrong field, ProposalOpen (409), Stale (412).
        """
        body, who = asked(BoundaryBody, request.data), caller(request)
        if ("document" in body) == ("yaml" in body):
            detail = "Give either the document or its text in YAML."
            raise InvalidInput(errors=[{"pointer": "/document", "code": "required", "detail": detail}])
        document = body["document"] if "document" in body else read_boundary_text(body["yaml"])
        expected = expected_version(request)
        asking = Who(principal=who.principal, owner=who.owner)

        def published() -> Answer:
            found = ask_to_publish_boundary(
                who.tenant, document, expected=expected, who=asking, reason=body["reason"]
            )
            return _answer(found, request)

        return post_once(request, published)


class OneBoundary(ByScope):
    """One boundary."""

    @extend_schema(
        operation_id="get_boundary",
        responses={200: BoundaryField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase | Response:
        """The version of it that is in force with its document, and an ETag that changes with it. Raises
        NotFound, also where every version is retired."""
        with tenant(caller(request).tenant):
            row = newest_boundary(known(slug))
            if row is None:
                raise NotFound
            shown = _whole(row)
        return unless_known(request, shown, str(row.version))


class BoundaryVersions(ByScope):
    """The versions of a boundary."""

    @extend_schema(
        operation_id="list_boundary_versions", responses=page_of(BoundaryField, "BoundaryVersionPage")
    )
    def get(self, request: Request, slug: str) -> Response:
        """All of them with their documents, retired ones too, newest first, in one page. Raises NotFound."""
        with tenant(caller(request).tenant):
            rows = [_whole(row) for row in boundary_versions(known(slug))]
        return Response({"results": rows, "next": None, "previous": None})


class RetireBoundary(ByScope):
    """Taking a version out of choice."""

    @extend_schema(
        operation_id="retire_boundary_version", request=RetireBody,
        responses={200: BoundaryField, 202: ToolProposalField},
    )  # fmt: skip
    def post(self, request: Request, slug: str, number: str) -> Response:
        """The version with the time at which it was retired; its runs go on. Where the version that is left
        lets runs do more it waits for a second administrator, where there is one (202). Raises NotFound,
        ProposalOpen (409)."""
        body, who = asked(RetireBody, request.data), caller(request)
        if not (number.isascii() and number.isdigit() and len(number) < 9):
            raise NotFound
        asking = Who(principal=who.principal, owner=who.owner)

        def retired() -> Answer:
            found = ask_to_retire_boundary(
                who.tenant, known(slug), int(number), who=asking, reason=body["reason"]
            )
            if isinstance(found, ToolProposal):
                return Answer(202, proposal_field(found))
            with tenant(who.tenant):
                return Answer(200, _whole(found))

        return post_once(request, retired)


class AllowTool(ByScope):
    """Allowing one more tool."""

    @extend_schema(operation_id="allow_tool", request=AllowBody, responses=ANSWERS)
    def post(self, request: Request, slug: str) -> Response:
        """Publish the boundary's newest version with this tool first among its tools. It waits for a second
        administrator, where there is one (202). Raises NotFound, InvalidInput (400), ProposalOpen (409)."""
        body, who = asked(AllowBody, request.data), caller(request)
        asking = Who(principal=who.principal, owner=who.owner)

        def allowed() -> Answer:
            found = ask_to_allow_tool(
                who.tenant, known(slug), body["tool"], Risk(body["risk_ceiling"]), who=asking,
                reason=body["reason"],
            )  # fmt: skip
            return _answer(found, request)

        return post_once(request, allowed)


def boundary_field(found: BoundaryPublication) -> dict[str, Any]:
    """A published version as the API says it. In the tenant's context."""
    return _whole(found.version)


def _answer(found: BoundaryPublication | ToolProposal, request: Request) -> Answer:
    if isinstance(found, ToolProposal):
        return Answer(202, proposal_field(found))
    with tenant(caller(request).tenant):
        return Answer(201 if found.new else 200, boundary_field(found))


def _row(row: BoundaryVersion) -> dict[str, Any]:
    return {
        "slug": row.slug, "version": row.version, "title": boundary_in(row).title, "digest": row.digest,
        "published_at": stamp(row.published_at),
        "published_by": str(row.published_by) if row.published_by else None,
        "retired_at": stamp(row.retired_at),
    }  # fmt: skip


def _whole(row: BoundaryVersion) -> dict[str, Any]:
    return {**_row(row), "document": boundary_document(row), "workflows": list(workflows_under(row.slug))}
