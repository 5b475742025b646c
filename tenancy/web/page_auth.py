"""Who is asking, for pages: a person by their session, in one tenant, with the scopes they have today.

A page is a function under `@page(Scope.READ)`. It reads inside `with tenant(request.member.tenant.id):` and
writes by one call of a verb, as the API's doors do; an `InterlockError` it does not catch becomes a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, cast
from urllib.parse import unquote
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils import timezone
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.module_loading import import_string

from tenancy.core.errors import Forbidden, InterlockError, NotFound, TenantSuspended
from tenancy.core.roles import SCOPES, Authority, Role, Scope
from tenancy.core.sign_in.rules import Area, Lack, SignInRules
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import BrowserSession, Person, Tenant, TenantSession
from tenancy.people.platform_admins import is_platform_admin
from tenancy.people.sign_in_rules import lack_of, sign_in_rules_now
from tenancy.queries import (
    PrincipalAuthority,
    standing_of_person,
    tenants_by_id,
    tenants_of_person,
    who_grants,
)
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.time_zones import is_known_time_zone
from tenancy.web.tenant_sessions import session_within

P = ParamSpec("P")
CHOSEN = "tenant"
"""The session's key for the chosen tenant's id."""
ZONE_COOKIE = "zone"
NO_RULES: Final = SignInRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person in the tenant they look at. `tenants` are all they belong to, by name; `session` is what the
    tenant has of the one they came by, None on its first page; `lack` is what keeps them out until they have
    or show a second factor, as the tenant's `rules` of signing in ask of their role."""

    person: Person
    tenant: Tenant
    tenants: tuple[Tenant, ...]
    principal: UUID
    owner: UUID
    roles: tuple[Role, ...]
    scopes: tuple[Scope, ...]
    authorities: tuple[Authority, ...]
    time_zone: ZoneInfo
    session: TenantSession | None = None
    rules: SignInRules = NO_RULES
    lack: Lack | None = None

    def may(self, *scopes: Scope) -> bool:
        """Whether all of `scopes` are held."""
        return all(scope in self.scopes for scope in scopes)


class PageRequest(HttpRequest):
    """A request whose sender is known."""

    member: Member


class NoTenant(Forbidden):
    """You belong to no tenant yet; an administrator of one can add you."""

    code = "no-tenant"


class NotConfirmed(Forbidden):
    """You do nothing in {tenant} before an administrator there confirms you: somebody saw your first-password
    link in another tenant."""

    code = "not-confirmed"


class ScopeMissing(Forbidden):
    """This page needs the scope {scope}, which comes with the role {role}."""

    code = "scope-missing"


View = Callable[Concatenate[PageRequest, P], HttpResponseBase]
Door = Callable[Concatenate[HttpRequest, P], HttpResponseBase]
Asks = tuple[Area, ...] | Callable[["PageRequest", Mapping[str, Any]], tuple[Area, ...]]
"""The areas of change that a page's form belongs to, always or by what the form and the address say."""


def require_member(*scopes: Scope, asks: Asks = (), unproven: bool = False) -> Callable[[View[P]], Door[P]]:
    """A view for members who hold all of `scopes`; none given: every member.

    Not signed in: to the sign-in page and back. No tenant, or a scope missing: 403 and whom to ask. Without
    the second factor that the tenant's rules ask of the role, or of a change of the areas that `asks` names:
    first that (R-SEC-11); an `unproven` page asks for none. Within the view times are those of the member's
    zone.
    """

    def decorate(view: View[P]) -> Door[P]:
        @wraps(view)
        def door(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            def proven(known: PageRequest) -> HttpResponseBase:
                missing = None if unproven else _ask_for_proof(known, asks, kwargs)
                return view(known, *args, **kwargs) if missing is None else missing

            response = _call_page_view(request, proven, scopes)
            add_never_cache_headers(response)
            patch_vary_headers(response, ("Cookie", "HX-Request"))
            return response

        door.asks = asks  # type: ignore[attr-defined]  # each form's area is listed by a test
        return door

    return decorate


def mark_unattended(view: View[P]) -> View[P]:
    """A view that a page asks by itself while it is open: it keeps no session alive."""
    view.unattended = True  # type: ignore[attr-defined]  # read by `tenancy.web.middleware.NoteActivity`
    return view


def redirect_unless_post(home: str, *places: str) -> Callable[[Door[P]], Door[P]]:
    """A page that only takes forms. Whoever opens its address, or loads again what it answered, is led to the
    page called `home`, with those `places` of the address that it has too (303).
    """

    def decorate(door: Door[P]) -> Door[P]:
        @wraps(door)
        def only(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method == "POST":
                return door(request, *args, **kwargs)
            where = resolve_url(home, **{place: kwargs[place] for place in places})
            return HttpResponseRedirect(where, status=303)

        return only

    return decorate


def _call_page_view(
    request: HttpRequest, view: Callable[[PageRequest], HttpResponseBase], scopes: tuple[Scope, ...]
) -> HttpResponseBase:
    try:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        member = member_of(request)
        if member is None:
            if getattr(request, "ended", False):
                logout(request)
                return to_sign_in(request)
            if request.path == "/" and is_platform_admin(request.user.pk):
                return HttpResponseRedirect(resolve_url("platform-tenants"))
            raise _make_no_tenant_error(request.user)
        with timezone.override(member.time_zone):
            try:
                check_scopes(member, *scopes)
                return view(cast("PageRequest", request))
            except InterlockError as error:
                return respond_with_problem(request, error)
    except InterlockError as error:
        return respond_with_problem(request, error)


def _ask_for_proof(request: PageRequest, asks: Asks, places: Mapping[str, Any]) -> HttpResponseBase | None:
    """The page that asks for the second factor in place of the view; None where nothing is lacking, be it
    because the form that it asked by has just shown the factor. The roof names who draws it
    (`INTERLOCK_PROOF_PAGE`)."""
    member = request.member
    areas: tuple[Area, ...] = ()
    if member.lack is None and request.method == "POST" and member.rules.ask_again:
        areas = asks(request, places) if callable(asks) else asks
    lack = member.lack or lack_of(request.session, member.person, member.rules, member.roles, areas)
    if lack is None:
        return None
    ask: Callable[[PageRequest, Lack], HttpResponse | None] = import_string(settings.INTERLOCK_PROOF_PAGE)
    if (asking := ask(request, lack)) is None:
        request.member = replace(member, lack=None)
    return asking


def check_scopes(member: Member, *scopes: Scope) -> None:
    """Raises ScopeMissing, with the roles that bring it and the administrators who give it."""
    for scope in scopes:
        if scope not in member.scopes:
            bringing = [role.value for role in Role if scope in SCOPES[role]]
            raise ScopeMissing(
                scope=scope.value, role=" or ".join(bringing), roles=[role.value for role in member.roles],
                admins=who_grants(member.tenant.id), tenant=member.tenant.name,
            )  # fmt: skip


def member_of(request: HttpRequest) -> Member | None:
    """The member who asks; None for a stranger and for a person without a tenant. Read once a request.

    A chosen tenant the person has left gives way to their first.
    """
    if not hasattr(request, "member"):
        request.member = _find_member(request)  # type: ignore[attr-defined]
    found: Member | None = request.member  # type: ignore[attr-defined]
    return found


def _find_member(request: HttpRequest) -> Member | None:
    person = request.user
    if not isinstance(person, Person) or not person.is_active:
        return None
    tenants = [one for one in _tenants_of(person) if one.suspended_at is None]
    chosen = request.session.get(CHOSEN)
    tenants_in_turn = sorted(tenants, key=lambda one: str(one.id) != chosen)
    for candidate in tenants_in_turn:
        with tenant_transaction(candidate.id):
            standing = standing_of_person(candidate.id, person.id)
            session, rules = _session_within(request), sign_in_rules_now().rules
        if standing is None:
            continue
        if session is not None and session.ended_at is not None:
            request.ended = True  # type: ignore[attr-defined]
            continue
        member = _as_member(request, person, candidate, tuple(tenants), standing, session)
        lack = lack_of(request.session, person, rules, standing.roles)
        return replace(member, rules=rules, lack=lack)
    return None


def _session_within(request: HttpRequest) -> TenantSession | None:
    """What the tenant has of the session that the request came by. In the tenant's context."""
    row: BrowserSession | None = getattr(request.session, "row", None)
    return None if row is None else session_within(row.id)


def _tenants_of(person: Person) -> list[Tenant]:
    return tenants_by_id(tenants_of_person(person.id))


def _make_no_tenant_error(person: Person) -> InterlockError:
    """Why a person has no tenant to act in: theirs is suspended, nobody confirmed them, or there is none."""
    theirs = _tenants_of(person)
    for one in theirs:
        if one.suspended_at is not None:
            return TenantSuspended(reason=one.suspended_reason)
    return NotConfirmed(tenant=theirs[0].name) if theirs else NoTenant()


def _as_member(
    request: HttpRequest,
    person: Person,
    at: Tenant,
    tenants: tuple[Tenant, ...],
    standing: PrincipalAuthority,
    session: TenantSession | None,
) -> Member:
    return Member(
        person=person, tenant=at, tenants=tenants, principal=standing.principal, owner=standing.owner,
        roles=standing.roles, scopes=standing.scopes, authorities=standing.authorities,
        time_zone=zone_of(request, at), session=session,
    )  # fmt: skip


def zone_of(request: HttpRequest, at: Tenant | None = None) -> ZoneInfo:
    """The zone the person asked for by cookie, else the tenant's, else UTC."""
    for name in (unquote(request.COOKIES.get(ZONE_COOKIE, "")), "" if at is None else at.time_zone):
        if is_known_time_zone(name):
            return ZoneInfo(name)
    return ZoneInfo("UTC")


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """To the sign-in page, and from there back to what was asked for."""
    if request.headers.get("HX-Request"):
        # A fragment must not be replaced by a whole sign-in page.
        back = redirect_to_login(request.headers.get("HX-Current-URL", "/")).url
        return HttpResponse(status=401, headers={"HX-Redirect": back})
    back_to = request.get_full_path() if request.method in {"GET", "HEAD"} else "/"
    return redirect_to_login(back_to)


def respond_with_problem(request: HttpRequest, error: InterlockError) -> HttpResponse:
    """The page or fragment that says what was refused; the roof names who draws it
    (`INTERLOCK_PROBLEM_PAGE`)."""
    draw: Callable[[HttpRequest, InterlockError], HttpResponse] = import_string(
        settings.INTERLOCK_PROBLEM_PAGE
    )
    return draw(request, error)


def redirect_back(request: HttpRequest, otherwise: str = "/") -> HttpResponseRedirect:
    """Back to the address in the form's `next`, if it is one of ours."""
    wanted = request.POST.get("next", "")
    fine = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(wanted if fine else resolve_url(otherwise))


@redirect_unless_post("overview")
@require_member(unproven=True)
def submit_tenant_switch(request: PageRequest) -> HttpResponse:
    """Look at another of one's tenants from now on. 404 for a tenant that is not one's own (R-SEC-1), and
    NotConfirmed where one does nothing yet."""
    wanted = uuid_or_none(request.POST.get("tenant", ""))
    found = next((one for one in request.member.tenants if one.id == wanted), None)
    if found is None:
        raise NotFound
    if standing_of_person(found.id, request.member.person.id) is None:
        raise NotConfirmed(tenant=found.name)
    request.session[CHOSEN] = str(found.id)
    return redirect_back(request)
