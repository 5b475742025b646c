"""The API of runs: list, get, cancel, pause, resume, events, result, plan, trace, replay."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api import presenters
from orchestrator.api.plan_serializers import PlanField
from orchestrator.api.serializers import (
    EventField,
    EventsQuery,
    NothingBody,
    ReasonBody,
    ReplayField,
    ResultField,
    RunField,
    RunFilters,
    RunRow,
)
from orchestrator.console.queries.plans import plan_of
from orchestrator.core.admission.errors import RunNotFound
from orchestrator.runs.actions import run_signals
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.replays import replay_stored_run
from orchestrator.runs.queries.runs import filter_runs, result_of, run_of, state_now
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, paginate_rows, post_once, unless_known, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.renderers import JSONLinesRenderer
from tenancy.rest.serializer_fields import page_of, validate_input
from traces.exports.jsonl import export_trace
from traces.queries import events_after

EVENTS_A_PAGE = 500
WISH: dict[str, Any] = {"request": ReasonBody, "responses": {202: RunRow}}


class ReadOnlyView(APIView):
    """A door that only reads."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]


class Runs(ReadOnlyView):
    """The runs of the caller's tenant, newest first."""

    @extend_schema(operation_id="list_runs", parameters=[RunFilters], responses=page_of(RunRow, "RunPage"))
    def get(self, request: Request) -> Response:
        """A page of runs, newest first. `status`, `workflow` and the other parameters narrow the list."""
        filters = validate_input(RunFilters, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            return paginate_rows(request, filter_runs(filters), presenters.serialize_run_row)


class OneRun(ReadOnlyView):
    """One run."""

    @extend_schema(
        operation_id="get_run",
        responses={200: RunField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase | Response:
        """The run as it stands, with an ETag that changes with it: its status, the whole of it in one
        sentence, what it used of its budget, and what it is pinned to."""
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            return unless_known(request, presenters.serialize_run(run), str(run.version))


class RunSignalView(APIView):
    """A door that leaves an operator's wish."""

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.OPERATE)]
    ask: Callable[..., Run]

    def post(self, request: Request, run_id: str) -> Response:
        """Leave the wish: 202 with the run as it stands. Raises RunNotFound and RunOver."""
        found = uuid_or_none(run_id)
        if found is None:
            raise RunNotFound
        reason = validate_input(ReasonBody, request.data)["reason"]
        return post_once(request, lambda: self._send_signal(request, found, reason))

    def _send_signal(self, request: Request, run_id: UUID, reason: str) -> StoredResponse:
        who = get_caller(request)
        run = type(self).ask(who.tenant, run_id, by=who.principal, reason=reason)
        return StoredResponse(202, presenters.serialize_run_row(run))


@extend_schema_view(post=extend_schema(operation_id="cancel_run", **WISH))
class Cancel(RunSignalView):
    """Stop the run; a client may stop its own tenant's runs too."""

    permission_classes = [make_scope_permission(Scope.SUBMIT)]
    ask = staticmethod(run_signals.cancel)


@extend_schema_view(post=extend_schema(operation_id="pause_run", **WISH))
class Pause(RunSignalView):
    """Hold the run before its next effect."""

    ask = staticmethod(run_signals.pause)


@extend_schema_view(post=extend_schema(operation_id="resume_run", **WISH))
class Resume(RunSignalView):
    """Let a paused run go on."""

    ask = staticmethod(run_signals.resume)


class Events(ReadOnlyView):
    """A run's trace, in order."""

    @extend_schema(
        operation_id="list_run_events", parameters=[EventsQuery], responses=page_of(EventField, "EventPage")
    )
    def get(self, request: Request, run_id: str) -> Response:
        """The events after a sequence number, oldest first: each model turn, tool call, decision and state of
        the run."""
        after: int = validate_input(EventsQuery, request.query_params)["after"]
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            found = events_after(run.id, after, EVENTS_A_PAGE)
        following = f"{request.path}?after={found[-1].seq}" if len(found) == EVENTS_A_PAGE else None
        return Response(
            {
                "results": [presenters.serialize_trace_event(row) for row in found],
                "next": following,
                "previous": None,
            }
        )


class Result(ReadOnlyView):
    """What a run ended with."""

    @extend_schema(operation_id="get_run_result", responses={200: ResultField, 202: RunRow})
    def get(self, request: Request, run_id: str) -> Response:
        """The typed result or the typed reason why not; 202 while the run is under way."""
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            document: dict[str, Any] | None = result_of(run)
        if document is None:
            return Response(presenters.serialize_run_row(run), status=202)
        said = {
            "status": run.status,
            "terminal_code": run.terminal_code,
            "reason": run.reason,
            "scripted": run.scripted,
            **presenters.serialize_untrusted_facts(document),
        }
        return Response({**said, **{name: value for name, value in document.items() if name not in said}})


class ThePlan(ReadOnlyView):
    """What comes next in a run, and what each step waits for."""

    @extend_schema(operation_id="get_run_plan", responses=PlanField)
    def get(self, request: Request, run_id: str) -> Response:
        """The steps with how they stand and what they come after, and the criteria."""
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            return Response(presenters.serialize_run_plan(plan_of(run, state_now(run.id))))


class Trace(ReadOnlyView):
    """A run's trace as a file."""

    renderer_classes = [JSONLinesRenderer, JSONRenderer]

    @extend_schema(operation_id="export_run_trace", responses={(200, "application/jsonl"): OpenApiTypes.STR})
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """JSONL, self-contained: it can be verified without this server."""
        with tenant_transaction(get_caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            lines = b"".join(export_trace(run.id))
        name = f'attachment; filename="{run.id}.jsonl"'
        return HttpResponse(lines, content_type="application/jsonl", headers={"Content-Disposition": name})


class Replay(ReadOnlyView):
    """Replay a run: the recorded events through the core again, no model, no tool (R-TRACE-6)."""

    @extend_schema(operation_id="replay_run", request=NothingBody, responses=ReplayField)
    def post(self, request: Request, run_id: str) -> Response:
        """The report. Raises RunNotFound."""
        found = uuid_or_none(run_id)
        if found is None:
            raise RunNotFound
        validate_input(NothingBody, request.data)
        return post_once(request, lambda: self._replay_run(request, found))

    def _replay_run(self, request: Request, run_id: UUID) -> StoredResponse:
        who = get_caller(request)
        with tenant_transaction(who.tenant):
            run = run_of(run_id)
        report = replay_stored_run(who.tenant, run.id)
        return StoredResponse(200, report.model_dump(mode="json"))
