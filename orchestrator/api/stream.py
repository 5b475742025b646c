"""GET /runs/{id}/stream: a run's events as they come (R-API-5, R-SESS-11).

This view knows the caller, finds the run and refuses; the stream itself is the ASGI server's
(traces/consumers/sse.py). Under a server that cannot stream, the answer is what there is so far: an event
source comes back with its last id, by the rules of the protocol.
"""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.runs import ReadOnlyView
from orchestrator.api.serializers import EventsQuery
from orchestrator.consumers import RunFeed
from orchestrator.runs.queries.runs import run_of
from tenancy.core.errors import TenancyError
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, uuid_or_none
from tenancy.rest.authentication import Caller, KeyAuthentication
from tenancy.rest.renderers import EventStreamRenderer
from tenancy.rest.serializer_fields import validate_input
from tenancy.web.connection_auth import Presence, of_caller, of_session
from traces.consumers.sse import ADMISSION, Admission, encode_sse_event
from traces.live.feeds import Batch, parse_run_cursor

FEED = RunFeed()
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    {"type": "string", "pattern": "^[0-9]{0,16}$"},
    OpenApiParameter.HEADER,
    description="The id of the last event that was taken; it goes before `after`; empty is none.",
)
# One event as the protocol frames it.
SENT: Any = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["event", "progress", "delta", "end"]},
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "data": {"type": "string"},
    },
    "required": ["event", "data"],
}
SAID = """Server-sent events: `event` (an event of the trace, its `seq` as the id), `progress`
(the envelope of the newest committed step), `delta` (without an id: what a model writes, before anything of
it is committed: `effect`, and its `text` from the character `at` on, as far as it goes), `end` (status and
terminal code; nothing follows). Comments keep it open."""
# The page's own session is nothing that a program's document offers.
BY_KEY: Any = [{"apiKey": []}]


class SessionAuthentication(BaseAuthentication):
    """A person's own page may follow too; only where nothing is changed."""

    def authenticate(self, request: Request) -> tuple[Caller, None] | None:
        """The person of the session; None for nobody."""
        session = getattr(request._request, "session", None)  # noqa: SLF001 - DRF's own way to Django's request
        if session is None or not session.session_key:
            return None
        try:
            found = of_session(session.session_key)
        except TenancyError:
            return None
        request._request.presence = found  # type: ignore[attr-defined]  # noqa: SLF001
        return Caller(
            principal=found.principal, owner=found.principal, tenant=found.tenant, scopes=found.scopes
        ), None


class Stream(ReadOnlyView):
    """A run's trace as it grows."""

    authentication_classes = [KeyAuthentication, SessionAuthentication]
    renderer_classes = [EventStreamRenderer]

    @extend_schema(
        operation_id="stream_run",
        parameters=[EventsQuery, LAST_EVENT_ID],
        responses={(200, "text/event-stream"): OpenApiResponse(SENT, description=SAID)},
        auth=BY_KEY,
    )
    def get(self, request: Request, run_id: str) -> HttpResponse | Response:
        """The events after a sequence number, and on from there."""
        after: int = validate_input(EventsQuery, request.query_params)["after"]
        last = request.headers.get("Last-Event-ID", "")
        try:
            after = parse_run_cursor(last) if last else after
        except ValueError:
            validate_input(EventsQuery, {"after": "-1"})
        who = get_caller(request)
        with tenant_transaction(who.tenant):
            run = run_of(uuid_or_none(run_id))
        admission: Admission | None = getattr(request._request, "scope", {}).get(ADMISSION)  # noqa: SLF001
        body = b""
        if admission is None:
            body = _so_far(who.tenant, run.id, after)
        else:
            admission.admit(_get_presence(request, who), run.id, after)
        return HttpResponse(body, content_type="text/event-stream")


def _get_presence(request: Request, who: Caller) -> Presence:
    found: Presence | None = getattr(request._request, "presence", None)  # noqa: SLF001
    return found or of_caller(who)


def _so_far(tenant_id: UUID, run_id: UUID, after: int) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        batch: Batch = FEED.read(tenant_id, run_id, after)
        parts += [encode_sse_event("event", item.body, item.seq) for item in batch.items]
        parts += [encode_sse_event(name, body) for name, body in sorted(batch.beside.items())]
        after, more = int(batch.seq), batch.more
    ending: Any = batch.end
    return b"".join(parts) + (encode_sse_event("end", ending) if ending is not None else b"")
