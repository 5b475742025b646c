"""GET /tenant/audit: who changed what, when, and why (R-SEC-6, R-UI-9)."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant
from tenancy.people.member_queries import Sought, audit_page, people
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, page

LONGEST = 200


@require_safe
@page(Scope.INSPECT)
def audit(request: PageRequest) -> HttpResponse:
    """A page of the audit log; filters stand in the address."""
    given = {
        name: request.GET.get(name, "")[:LONGEST].replace("\x00", "") for name in ("verb", "object", "by")
    }
    sought = Sought(verb=given["verb"], object=given["object"], by=uuid_or_none(given["by"]))
    cursor = request.GET.get("cursor", "")
    with tenant(request.member.tenant.id):
        found = audit_page(sought, cursor)
        context = {
            "found": found,
            "sought": sought,
            "cursor": cursor,
            "people": [named for named in people() if named.principal is not None],
            "following": _url(given, found.following) if found.following else "",
            "first": _url(given, ""),
        }
        return render(request, "tenancy/audit.html", context)


def _url(given: dict[str, str], cursor: str) -> str:
    query = {name: value for name, value in {**given, "cursor": cursor}.items() if value}
    return f"{reverse('audit')}?{urlencode(query)}" if query else reverse("audit")
