"""What no address of ours may carry (W2), and what every answer tells."""

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
    """PostgreSQL takes no NUL in a text: one in a path, a query or a form is the caller's fault (400), not
    ours (500). What is no form, its own parser refuses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response. Raises BadRequest for a NUL."""
        if "\x00" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest
        form = request.content_type in FORMS and not request.path_info.startswith("/api/")
        if form and any("\x00" in text for _, texts in request.POST.lists() for text in texts):
            raise BadRequest
        return self.get_response(request)


class LeaveReach:
    """The reach of a key (R-SEC-11) holds for the request that showed the key, and for nothing after it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response."""
        enter_reach(None)
        try:
            return self.get_response(request)
        finally:
            enter_reach(None)


class NoteActivity:
    """Notes that a person did something with their session, which ends when they do nothing for long. What a
    page asks by itself while it is open (`tenancy.web.page_auth.unattended`) is not something that a person
    does."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response."""
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
    """Tells the caller what is left of its rate, on every answer that counted against it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The response with RateLimit headers."""
        response = self.get_response(request)
        standing: RateStatus | None = getattr(request, "rate", None)
        if standing is not None:
            for name, value in standing.headers.items():
                response.headers[name] = value
        return response
