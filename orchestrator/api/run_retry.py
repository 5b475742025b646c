"""The API of retrying a run: its checkpoints, and the run that begins at one of them (R-SESS-9)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.presenters import build_run_links
from orchestrator.api.retry_serializers import CheckpointQuery, CheckpointRow, RetryBody
from orchestrator.api.serializers import TaskAccepted, format_timestamp
from orchestrator.core.admission.errors import RunNotFound
from orchestrator.runs.actions.retry import Retry, retry_run
from orchestrator.runs.queries.checkpoints import Checkpoint, EndedRun
from orchestrator.runs.queries.runs import run_of
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import PAGE, get_caller, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import page_of, validate_input

DIGITS = 15


class Checkpoints(APIView):
    """Where a retry of a run may begin."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(
        operation_id="list_checkpoints",
        parameters=[CheckpointQuery],
        responses=page_of(CheckpointRow, "CheckpointPage"),
    )
    def get(self, request: Request, run_id: str) -> Response:
        """A page of checkpoints, newest first; one may hold fewer than were asked for, and the next go on."""
        given = validate_input(CheckpointQuery, request.query_params)
        limit, below = given.get("limit", PAGE), _parse_page_cursor(given.get("cursor", ""))
        with tenant_transaction(get_caller(request).tenant):
            found = EndedRun(run_of(uuid_or_none(run_id))).page(below, limit)
        following = None
        if found.below is not None:
            query = request.query_params.copy()
            query["cursor"] = str(found.below)
            following = f"{request.path}?{query.urlencode()}"
        rows = [_serialize_checkpoint(one) for one in found.found]
        return Response({"results": rows, "next": following, "previous": None})


class RetryRun(APIView):
    """Begin an ended run again. It acts in the name of whoever submitted the task, so it takes both what
    submitting takes and what operating does."""

    permission_classes: list[type[BasePermission]] = [
        make_scope_permission(Scope.OPERATE),
        make_scope_permission(Scope.SUBMIT),
    ]

    @extend_schema(operation_id="retry_run", request=RetryBody, responses={202: TaskAccepted})
    def post(self, request: Request, run_id: str) -> Response:
        """Accept a retry: 202 with the further run of the task."""
        found = uuid_or_none(run_id)
        if found is None:
            raise RunNotFound
        body = validate_input(RetryBody, request.data)
        return post_once(request, lambda: self._retry(request, found, body))

    def _retry(self, request: Request, run_id: UUID, body: dict[str, Any]) -> StoredResponse:
        who = get_caller(request)
        retry = Retry(
            principal=who.principal, owner=who.owner, reason=body["reason"], record=body.get("record"),
            key=request.headers.get("Idempotency-Key", ""),
        )  # fmt: skip
        accepted = retry_run(who.tenant, run_id, retry)
        run = {"id": str(accepted.run), "status": accepted.status}
        return StoredResponse(
            202, {"id": str(accepted.task), "run": run, "links": build_run_links(accepted.run)}
        )


def _serialize_checkpoint(one: Checkpoint) -> dict[str, Any]:
    refused = None if one.refused is None else {"code": one.refused.code, "detail": str(one.refused)}
    return {
        "record": one.record,
        "at": format_timestamp(one.at),
        "node": one.position,
        "next": one.next,
        "retryable": refused is None,
        "refused": refused,
    }


def _parse_page_cursor(cursor: str) -> int | None:
    """Parse the record below which a page begins, None for the first page.

    Raises: ParseError.
    """
    if not cursor:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= DIGITS):
        raise ParseError("The cursor is not one of ours.", "cursor-invalid")
    return int(cursor)
