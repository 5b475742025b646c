"""GET /tenant/audit: who changed what, when, and why (R-SEC-6, R-UI-9)."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.member_queries import AuditFilter, audit_page, list_people
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.page_auth import PageRequest, require_member

LONGEST = 200


@require_safe
@require_member(Scope.INSPECT)
def show_audit_page(request: PageRequest) -> HttpResponse:
    """A page of the audit log; filters stand in the address."""
    given = {
        name: request.GET.get(name, "")[:LONGEST].replace("\x00", "") for name in ("verb", "object", "by")
    }
    sought = AuditFilter(verb=given["verb"], object=given["object"], by=uuid_or_none(given["by"]))
    cursor = request.GET.get("cursor", "")
    with tenant_transaction(request.member.tenant.id):
        found = audit_page(sought, cursor)
        context = {
            "found": found,
            "sought": sought,
            "cursor": cursor,
            "people": [named for named in list_people() if named.principal is not None],
            "following": _build_page_url(given, found.following) if found.following else "",
            "first": _build_page_url(given, ""),
        }
        return render(request, "tenancy/audit.html", context)


def _build_page_url(given: dict[str, str], cursor: str) -> str:
    query = {name: value for name, value in {**given, "cursor": cursor}.items() if value}
    return f"{reverse('audit')}?{urlencode(query)}" if query else reverse("audit")
