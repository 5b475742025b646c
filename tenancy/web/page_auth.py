"""Authentication for pages: a person by session, in one tenant, with the person's current scopes.

A page is a function under `@require_member(Scope.READ)`. The page reads inside `with
tenant_transaction(request.member.tenant.id):` and writes by one call of an action, as the API's views do. An
`InterlockError` that the page does not catch becomes an error page.
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
from tenancy.core.sign_in.rules import Area, MissingFactor, SignInRules
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
    """A person in the tenant that the person has chosen.

    `tenants` are all open tenants of the person, by name. `session` is the tenant's record of the person's
    session, None on the first page. `lack` is the missing second factor that the tenant's sign-in `rules`
    require for the person's role; until it is shown, pages are refused.
    """

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
    lack: MissingFactor | None = None

    def may(self, *scopes: Scope) -> bool:
        """Return whether the member has all of `scopes`."""
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
    """Build a decorator for views of members who have all of `scopes`; without scopes, of every member.

    A visitor who is not signed in is redirected to the sign-in page and back. Without a tenant, or with a
    scope missing, the response is 403 and says whom to ask. If the tenant's rules require the second factor
    for the role, or for a change of the areas that `asks` names, the factor is asked for first (R-SEC-11); an
    `unproven` page asks for none. Within the view, times are in the member's time zone.
    """

    def decorate(view: View[P]) -> Door[P]:
        @wraps(view)
        def door(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            def call_proven_view(known: PageRequest) -> HttpResponseBase:
                missing = None if unproven else _ask_for_proof(known, asks, kwargs)
                return view(known, *args, **kwargs) if missing is None else missing

            response = _call_page_view(request, call_proven_view, scopes)
            add_never_cache_headers(response)
            patch_vary_headers(response, ("Cookie", "HX-Request"))
            return response

        door.asks = asks  # type: ignore[attr-defined]  # each form's area is listed by a test
        return door

    return decorate


def mark_unattended(view: View[P]) -> View[P]:
    """Mark a view that an open page requests by itself, so that it does not keep a session alive."""
    view.unattended = True  # type: ignore[attr-defined]  # read by `tenancy.web.middleware.NoteActivity`
    return view


def redirect_unless_post(home: str, *places: str) -> Callable[[Door[P]], Door[P]]:
    """Build a decorator for a page that only accepts forms.

    A request with another method, for example a reload of the response, is redirected to the page called
    `home` with status 303. `places` are the URL arguments that both pages have in common.
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
    """Return the page that asks for the second factor in place of the view; None if nothing is missing.

    Nothing is missing, too, if the request's form has just shown the factor. The setting
    `INTERLOCK_PROOF_PAGE` names the function that renders the page.
    """
    member = request.member
    areas: tuple[Area, ...] = ()
    if member.lack is None and request.method == "POST" and member.rules.ask_again:
        areas = asks(request, places) if callable(asks) else asks
    lack = member.lack or lack_of(request.session, member.person, member.rules, member.roles, areas)
    if lack is None:
        return None
    ask: Callable[[PageRequest, MissingFactor], HttpResponse | None] = import_string(
        settings.INTERLOCK_PROOF_PAGE
    )
    if (asking := ask(request, lack)) is None:
        request.member = replace(member, lack=None)
    return asking


def check_scopes(member: Member, *scopes: Scope) -> None:
    """Check that the member has all scopes.

    Raises: ScopeMissing, with the roles that have the scope and the administrators who can give them.
    """
    for scope in scopes:
        if scope not in member.scopes:
            bringing = [role.value for role in Role if scope in SCOPES[role]]
            raise ScopeMissing(
                scope=scope.value, role=" or ".join(bringing), roles=[role.value for role in member.roles],
                admins=who_grants(member.tenant.id), tenant=member.tenant.name,
            )  # fmt: skip


def member_of(request: HttpRequest) -> Member | None:
    """Return the member who sent the request; None for a stranger and for a person without a tenant.

    The member is read once per request. If the person has left the chosen tenant, the first one is used.
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
    """Return the tenant's record of the request's session. In the tenant's context."""
    row: BrowserSession | None = getattr(request.session, "row", None)
    return None if row is None else session_within(row.id)


def _tenants_of(person: Person) -> list[Tenant]:
    return tenants_by_id(tenants_of_person(person.id))


def _make_no_tenant_error(person: Person) -> InterlockError:
    """Return why a person has no tenant to act in: suspended, not confirmed, or no tenant at all."""
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
    """Return the time zone from the person's cookie, else the tenant's, else UTC."""
    for name in (unquote(request.COOKIES.get(ZONE_COOKIE, "")), "" if at is None else at.time_zone):
        if is_known_time_zone(name):
            return ZoneInfo(name)
    return ZoneInfo("UTC")


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect to the sign-in page, and from there back to the requested address."""
    if request.headers.get("HX-Request"):
        # An htmx fragment must not be replaced by a whole sign-in page.
        back = redirect_to_login(request.headers.get("HX-Current-URL", "/")).url
        return HttpResponse(status=401, headers={"HX-Redirect": back})
    back_to = request.get_full_path() if request.method in {"GET", "HEAD"} else "/"
    return redirect_to_login(back_to)


def respond_with_problem(request: HttpRequest, error: InterlockError) -> HttpResponse:
    """Return the page or fragment that describes a refusal.

    The setting `INTERLOCK_PROBLEM_PAGE` names the function that renders it.
    """
    draw: Callable[[HttpRequest, InterlockError], HttpResponse] = import_string(
        settings.INTERLOCK_PROBLEM_PAGE
    )
    return draw(request, error)


def redirect_back(request: HttpRequest, otherwise: str = "/") -> HttpResponseRedirect:
    """Redirect to the address in the form's `next`, if it is one of this site."""
    wanted = request.POST.get("next", "")
    fine = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(wanted if fine else resolve_url(otherwise))


@redirect_unless_post("overview")
@require_member(unproven=True)
def submit_tenant_switch(request: PageRequest) -> HttpResponse:
    """Switch to another of the person's tenants.

    Raises: NotFound (404) for a tenant that is not the person's own (R-SEC-1); NotConfirmed if the person has
    no permissions there yet.
    """
    wanted = uuid_or_none(request.POST.get("tenant", ""))
    found = next((one for one in request.member.tenants if one.id == wanted), None)
    if found is None:
        raise NotFound
    if standing_of_person(found.id, request.member.person.id) is None:
        raise NotConfirmed(tenant=found.name)
    request.session[CHOSEN] = str(found.id)
    return redirect_back(request)
