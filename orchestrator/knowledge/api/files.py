"""The API of a run's files: list them, fetch one or all, compare revisions (R-TOOL-19)."""

from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.runs import ReadOnlyView
from orchestrator.core.files.unified_diff import format_unified_diff
from orchestrator.knowledge.api.file_serializers import DiffQuery, FilesField, RevisionQuery
from orchestrator.knowledge.queries.workspace import (
    WorkspaceState,
    build_zip_archive,
    find_file_content,
    get_newest_revision,
    get_workspace_revision,
    list_workspace_revisions,
    load_file_contents,
)
from orchestrator.runs.queries.runs import run_of
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, uuid_or_none
from tenancy.rest.renderers import JSONLinesRenderer
from tenancy.rest.serializer_fields import validate_input


class BytesRenderer(JSONLinesRenderer):
    """Lets a client ask for bytes. An error is still a problem document."""

    media_type = "application/octet-stream"
    format = "bytes"


class ZipRenderer(JSONLinesRenderer):
    """Lets a client ask for an archive."""

    media_type = "application/zip"
    format = "zip"


class DiffRenderer(JSONLinesRenderer):
    """Lets a client ask for a diff."""

    media_type = "text/x-diff"
    format = "diff"


class Files(ReadOnlyView):
    """A run's files."""

    @extend_schema(operation_id="list_run_files", parameters=[RevisionQuery], responses=FilesField)
    def get(self, request: Request, run_id: str) -> Response:
        """The files at a revision, and every revision."""
        query = validate_input(RevisionQuery, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id)).id
            held = _get_workspace_revision(run, query.get("revision"))
            known = list_workspace_revisions(run)
        return Response(
            {
                "revision": held.number, "digest": held.digest,
                "files": [entry.model_dump() for entry in held.tree.entries],
                "revisions": [_serialize_revision(one) for one in known],
            }
        )  # fmt: skip


class FileContent(ReadOnlyView):
    """One file of a run."""

    renderer_classes = [BytesRenderer, JSONRenderer]

    @extend_schema(
        operation_id="get_run_file", parameters=[RevisionQuery],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )  # fmt: skip
    def get(self, request: Request, run_id: str, file: str) -> HttpResponse:
        """Its bytes; `file` is its path."""
        query = validate_input(RevisionQuery, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            held = _get_workspace_revision(run_of(uuid_or_none(run_id)).id, query.get("revision"))
            body = find_file_content(held, file)
        if body is None:
            raise NotFound
        return build_attachment_response(body, file)


class Archive(ReadOnlyView):
    """All files of a run."""

    renderer_classes = [ZipRenderer, JSONRenderer]

    @extend_schema(
        operation_id="get_run_files_archive", parameters=[RevisionQuery],
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )  # fmt: skip
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """A zip archive of them."""
        query = validate_input(RevisionQuery, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            held = _get_workspace_revision(run_of(uuid_or_none(run_id)).id, query.get("revision"))
            return build_attachment_response(
                build_zip_archive(held), f"{held.run}-{held.number}.zip", kind="application/zip"
            )


class Diff(ReadOnlyView):
    """What was changed in a run's files."""

    renderer_classes = [DiffRenderer, JSONRenderer]

    @extend_schema(
        operation_id="get_run_files_diff", parameters=[DiffQuery],
        responses={(200, "text/x-diff"): OpenApiTypes.STR},
    )  # fmt: skip
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """A unified diff from one revision to another."""
        query = validate_input(DiffQuery, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id)).id
            before, after = (
                _get_workspace_revision(run, query["before"]),
                _get_workspace_revision(run, query.get("after")),
            )
            text = format_unified_diff(
                load_file_contents(run, before.tree.entries), load_file_contents(run, after.tree.entries)
            )
        return HttpResponse(text.encode(), content_type="text/x-diff; charset=utf-8")


def build_attachment_response(
    body: bytes, path: str, *, kind: str = "application/octet-stream"
) -> HttpResponse:
    """Build a download named by the last part of the path; a browser never displays the bytes."""
    name = path.rsplit("/", 1)[-1]
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(body, content_type=kind, headers=headers)


def _get_workspace_revision(run: UUID, number: int | None) -> WorkspaceState:
    return get_newest_revision(run) if number is None else get_workspace_revision(run, number)


def _serialize_revision(held: WorkspaceState) -> dict[str, Any]:
    return {
        "number": held.number, "cause": held.cause, "digest": held.digest, "summary": held.summary,
        "at": held.at,
    }  # fmt: skip
