"""Middleware: reject NUL characters (W2), reset a key's reach, note activity, show the rate limit."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from tenancy.actions.sessions import note_activity, note_presence
from tenancy.db.tenant_context import enter_reach
from tenancy.rest.throttling import RateStatus
from tenancy.web.client_address import visitor_of
from tenancy.web.page_auth import Member

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class RefuseNul:
    """Reject NUL characters in a path, a query or a form with 400.

    PostgreSQL accepts no NUL in a text; without this check the caller's error would become a 500. Bodies
    other than forms are checked by their own parser.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response.

        Raises: BadRequest for a NUL.
        """
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest
        form = request.content_type in FORMS and not request.path_info.startswith("/api/")
        if form and any("\x00" in text for _, texts in request.POST.lists() for text in texts):
            raise BadRequest
        return self.get_response(request)


class LeaveReach:
    """Limit the reach of a key (R-SEC-11) to the request that showed the key."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        enter_reach(None)
        try:
            return self.get_response(request)
        finally:
            enter_reach(None)


class NoteActivity:
    """Record that a person used their session, which ends after a long time without activity.

    Requests that an open page sends by itself (`tenancy.web.page_auth.unattended`) are not activity of a
    person.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = getattr(request.session, "row", None)
        match = request.resolver_match
        if session is None or match is None or getattr(match.func, "unattended", False):
            return response
        visitor = visitor_of(request)
        note_activity(session, visitor)
        member: Member | None = getattr(request, "member", None)
        if member is not None:
            note_presence(member.tenant.id, member.person, session, member.session, visitor)
        return response


class ShowRate:
    """Add the remaining rate to every response that counted against it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response with RateLimit headers."""
        response = self.get_response(request)
        standing: RateStatus | None = getattr(request, "rate", None)
        if standing is not None:
            for name, value in standing.headers.items():
                response.headers[name] = value
        return response
