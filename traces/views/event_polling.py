"""Polling endpoint for pages whose socket does not open: the same fragments, from the same cursor."""

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
    """Return the fragments of `?view=` after `?after=`, with the cursors in headers.

    The response is 304 when the page has the fragments already.

    Raises: BadRequest for an invalid cursor or view, NotFound for a subject that the tenant does not have.
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
