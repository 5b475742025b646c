"""What a page asks for every few seconds when no socket opens: the same fragments, from the same cursor."""

from hashlib import blake2b
from uuid import UUID

from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.http.response import HttpResponseNotModified
from django.utils.http import parse_etags

from tenancy.core.errors import NotFound
from tenancy.web.page_auth import PageRequest
from traces.live.feeds import Feed


def poll_feed(request: PageRequest, feed: Feed, subject: UUID) -> HttpResponse:
    """The fragments of `?view=` after `?after=`, the cursors in headers; 304 where the page has them already.

    Raises BadRequest for a cursor or a view that is none, NotFound for what the tenant does not have.
    """
    try:
        view = feed.view(request.GET.get("view"), request.member.principal)
        after = feed.cursor(request.GET.get("after"))
    except ValueError:
        raise BadRequest from None
    tenant_id = request.member.tenant.id
    if not feed.pages or not feed.find(tenant_id, subject):
        raise NotFound
    scopes = tuple(scope.value for scope in request.member.scopes)
    found = feed.render(tenant_id, subject, after, scopes, view)
    tag = f'"{blake2b(found.html.encode(), digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Interlock-After": str(found.after), "Interlock-Seq": str(found.seq)}
    if tag in parse_etags(request.headers.get("If-None-Match", "")) and not found.more:
        return HttpResponseNotModified(headers=headers)
    return HttpResponse(found.html, headers=headers)
