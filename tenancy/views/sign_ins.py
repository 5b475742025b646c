"""GET /tenant/sign-ins: who is signed in, what failed, who has to wait; ending and lifting (R-SEC-11)."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from tenancy.actions.sessions import end_tenant_session
from tenancy.actions.sign_in import lift_limits
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, redirect_unless_post, require_member
from tenancy.web.tenant_sessions import limited_people, tenant_failures, tenant_sessions


@require_safe
@require_member(Scope.ADMIN)
def sign_ins(request: PageRequest) -> HttpResponse:
    """The sessions that act in this tenant, what failed for its people, and who has to wait."""
    with tenant_transaction(request.member.tenant.id):
        context = {
            "limited": limited_people(database_now()),
            "sessions": tenant_sessions(),
            "failures": tenant_failures(),
            "current": request.member.session.id if request.member.session else None,
        }
        return render(request, "tenancy/sign_ins.html", context)


@redirect_unless_post("sign-ins")
@require_member(Scope.ADMIN)
def end_member_session(request: PageRequest, session_id: UUID) -> HttpResponse:
    """End a session within this tenant. Raises NotFound."""
    house, by = request.member.tenant.id, request.member.principal
    person = end_tenant_session(house, session_id, by=by, reason=_read_reason(request))
    messages.success(request, f"The session of {person.name} is ended in this tenant.")
    return redirect("sign-ins")


@redirect_unless_post("sign-ins")
@require_member(Scope.ADMIN)
def lift_sign_in_limits(request: PageRequest, person_id: UUID) -> HttpResponse:
    """Let somebody try again at once. Raises NotFound."""
    person = lift_limits(
        request.member.tenant.id, person_id, by=request.member.principal, reason=_read_reason(request)
    )
    messages.success(request, f"{person.name} may try to sign in again at once.")
    return redirect("sign-ins")


def _read_reason(request: PageRequest) -> str:
    return request.POST.get("reason", "").strip()[:500]
