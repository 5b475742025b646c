"""Runs: list, get, cancel, pause, resume, events, result, trace, replay."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from orchestrator.actions import signalling
from orchestrator.api import shown
from orchestrator.api.serializers import EventField, ReasonBody, ReplayField, RunField, RunRow, page_of
from orchestrator.core.errors import RunNotFound
from orchestrator.models import Run
from orchestrator.queries.replays import replay
from orchestrator.queries.runs import result_of, run_of, runs
from tenancy.context import tenant
from tenancy.core.roles import Scope
from tenancy.doors import caller, page, post_once, uuid_or_none
from tenancy.idempotency import Answer
from tenancy.permissions import requires
from traces.exports.jsonl import export
from traces.queries import events_after

FILTERS = ("status", "workflow", "terminal_code", "created_after", "q")
EVENTS_A_PAGE = 500


class Reading(APIView):
    """A door that only reads."""

    permission_classes: list[type[BasePermission]] = [requires(Scope.READ)]


class Runs(Reading):
    """The runs of the caller's tenant, newest first."""

    @extend_schema(
        parameters=[OpenApiParameter(name) for name in (*FILTERS, "cursor", "limit")],
        responses=page_of(RunRow),
    )
    def get(self, request: Request) -> Response:
        """A page of runs."""
        filters = {name: request.query_params[name] for name in FILTERS if name in request.query_params}
        with tenant(caller(request).tenant):
            return page(request, runs(filters), shown.row)


class OneRun(Reading):
    """One run."""

    @extend_schema(responses=RunField)
    def get(self, request: Request, run_id: str) -> Response:
        """The run as it stands, with an ETag that changes with it."""
        with tenant(caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            return Response(shown.whole(run), headers={"ETag": f'"{run.version}"'})


class Asking(APIView):
    """A door that leaves an operator's wish."""

    permission_classes: list[type[BasePermission]] = [requires(Scope.OPERATE)]
    ask: Callable[..., Run]

    @extend_schema(request=ReasonBody, responses={202: RunRow})
    def post(self, request: Request, run_id: str) -> Response:
        """Leave the wish: 202 with the run as it stands."""
        body = ReasonBody(data=request.data)
        body.is_valid(raise_exception=True)
        return post_once(request, lambda: self._asked(request, run_id, body.validated_data["reason"]))

    def _asked(self, request: Request, run_id: str, reason: str) -> Answer:
        who, found = caller(request), uuid_or_none(run_id)
        if found is None:
            raise RunNotFound
        run = type(self).ask(who.tenant, found, by=who.principal, reason=reason)
        return Answer(202, shown.row(run))


class Cancel(Asking):
    """Stop the run; a client may stop its own tenant's runs too."""

    permission_classes = [requires(Scope.SUBMIT)]
    ask = staticmethod(signalling.cancel)


class Pause(Asking):
    """Hold the run before its next effect."""

    ask = staticmethod(signalling.pause)


class Resume(Asking):
    """Let a paused run go on."""

    ask = staticmethod(signalling.resume)


class Events(Reading):
    """A run's trace, in order."""

    @extend_schema(parameters=[OpenApiParameter("after", OpenApiTypes.INT)], responses=page_of(EventField))
    def get(self, request: Request, run_id: str) -> Response:
        """The events after a sequence number."""
        after = request.query_params.get("after", "0")
        if not after.isdigit() or len(after) > 18:
            raise ParseError("after is a sequence number.", "after-invalid")
        with tenant(caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            found = events_after(run.id, int(after), EVENTS_A_PAGE)
        following = f"{request.path}?after={found[-1].seq}" if len(found) == EVENTS_A_PAGE else None
        return Response({"results": [shown.event(row) for row in found], "next": following, "previous": None})


class Result(Reading):
    """What a run ended with."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT, 202: RunRow})
    def get(self, request: Request, run_id: str) -> Response:
        """The typed result or the typed reason why not; 202 while the run is under way."""
        with tenant(caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            document: dict[str, Any] | None = result_of(run)
        if document is None:
            return Response(shown.row(run), status=202)
        said = {
            "status": run.status,
            "terminal_code": run.terminal_code,
            "reason": run.reason,
            "scripted": run.scripted,
        }
        return Response({**said, **{name: value for name, value in document.items() if name not in said}})


class Trace(Reading):
    """A run's trace as a file."""

    @extend_schema(responses={(200, "application/jsonl"): OpenApiTypes.STR})
    def get(self, request: Request, run_id: str) -> HttpResponse:
        """JSONL, self-contained: it can be verified without this server."""
        with tenant(caller(request).tenant):
            run = run_of(uuid_or_none(run_id))
            lines = b"".join(export(run.id))
        name = f'attachment; filename="{run.id}.jsonl"'
        return HttpResponse(lines, content_type="application/jsonl", headers={"Content-Disposition": name})


class Replay(Reading):
    """Replay a run: the recorded events through the core again, no model, no tool (R-TRACE-6)."""

    @extend_schema(request=None, responses=ReplayField)
    def post(self, request: Request, run_id: str) -> Response:
        """The report."""
        return post_once(request, lambda: self._replayed(request, run_id))

    def _replayed(self, request: Request, run_id: str) -> Answer:
        who = caller(request)
        with tenant(who.tenant):
            run = run_of(uuid_or_none(run_id))
        report = replay(who.tenant, run.id)
        return Answer(200, report.model_dump(mode="json"))
