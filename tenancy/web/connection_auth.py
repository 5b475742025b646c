"""Who stands behind a connection that stays open: a person's session or a key, looked at now and again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from http.cookies import CookieError
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from tenancy.core.errors import Forbidden, KeyInvalid, TenancyError
from tenancy.core.reach import Reach
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Person
from tenancy.people.sign_in_rules import SecondFactorMissing, lack_of, sign_in_rules_now
from tenancy.queries import (
    check_tenant_open,
    standing_of,
    standing_of_person,
    tenants_by_id,
    tenants_of_person,
)
from tenancy.rest.authentication import Caller, caller_of
from tenancy.web.client_address import client_address
from tenancy.web.tenant_sessions import session_within

Headers = tuple[tuple[bytes, bytes], ...]
CHOSEN = "tenant"
"""The session's key for the chosen tenant's id (tenancy/web/page_auth.py)."""


class SignedOut(TenancyError):
    """Nobody is signed in here."""

    code = "signed-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A principal in a tenant with the scopes it had when last looked at. `session` is a person's, `key` a
    program's; `reach` None: every run of the tenant."""

    tenant: UUID
    principal: UUID
    scopes: tuple[str, ...]
    session: str | None = None
    key: UUID | None = None
    reach: Reach | None = None

    @property
    def is_person(self) -> bool:
        """Whether a person's browser asks, and not a program."""
        return self.session is not None

    def needs(self, scope: Scope) -> None:
        """Raises Forbidden without the scope."""
        if scope.value not in self.scopes:
            raise Forbidden(reason=f"this needs the scope {scope.value}")


def get_header(headers: Headers, name: bytes) -> str:
    """A header's value, the last one's where there are several; "" for none."""
    return dict(headers).get(name, b"").decode("latin-1")


def same_origin(headers: Headers) -> bool:
    """Whether a page of this very house asks. A program shows a key, which no page sends by itself."""
    if get_header(headers, b"authorization"):
        return True
    origin, host = get_header(headers, b"origin"), get_header(headers, b"host")
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        asked = urlsplit(origin).netloc
    except ValueError:
        return False
    domain, _ = split_domain_port(host)
    return bool(host) and asked == host and validate_host(domain, settings.ALLOWED_HOSTS)


def authenticate_connection(headers: Headers, peer: str = "") -> Presence:
    """Who asks, by `Authorization: Bearer` or by the session's cookie; `peer` is the connection's other end.

    Raises SignedOut, KeyInvalid, KeyExpired, KeyRevoked, KeyElsewhere, and Forbidden for a person of no
    tenant.
    """
    if given := get_header(headers, b"authorization"):
        word, _, key = given.partition(" ")
        if word.lower() != "bearer":
            raise KeyInvalid
        return of_caller(
            caller_of(key.strip(), client_address(peer, get_header(headers, b"x-forwarded-for")))
        )
    try:
        cookies = parse_cookie(get_header(headers, b"cookie"))
    except CookieError:
        raise SignedOut from None
    session = cookies.get(settings.SESSION_COOKIE_NAME)
    if not session:
        raise SignedOut
    return of_session(session)


def of_caller(who: Caller) -> Presence:
    """The program that showed a key."""
    return Presence(
        tenant=who.tenant, principal=who.principal, scopes=who.scopes, key=who.key, reach=who.reach
    )


def of_session(key: str, tenant_id: UUID | None = None) -> Presence:
    """The person of a session, in the tenant it is in or the one given. Raises SignedOut, Forbidden, and
    SecondFactorMissing where the tenant's rules of signing in keep them out."""
    store = cast("Callable[[str], Any]", import_module(settings.SESSION_ENGINE).SessionStore)(key)
    person = get_user(cast("Any", SimpleNamespace(session=store)))
    if not isinstance(person, Person) or not person.is_active:
        raise SignedOut
    wanted = str(tenant_id or store.get(CHOSEN, ""))
    open_ones = [one for one in tenants_by_id(tenants_of_person(person.id)) if one.suspended_at is None]
    houses = [one.id for one in open_ones]
    # A chosen tenant that was left gives way to the first, as on a page; one that is followed does not.
    houses.sort(key=lambda house: str(house) != wanted)
    ended = False
    for house in houses if tenant_id is None else [tenant_id]:
        with tenant_transaction(house):
            standing, within = standing_of_person(house, person.id), session_within(store.row.id)
            rules = sign_in_rules_now().rules
        if within is not None and within.ended_at is not None:
            ended = True
            continue
        if standing is not None:
            if lack_of(store, person, rules, standing.roles) is not None:
                raise SecondFactorMissing
            scopes = tuple(scope.value for scope in standing.scopes)
            return Presence(tenant=house, principal=standing.principal, scopes=scopes, session=key)
    if ended:
        raise SignedOut
    raise Forbidden(reason="you have no role in this tenant")


def look_again(presence: Presence) -> Presence:
    """The same principal as it stands now. Raises as `authenticate_connection` does, and TenantSuspended."""
    check_tenant_open(presence.tenant)
    if presence.session is not None:
        return of_session(presence.session, presence.tenant)
    standing = standing_of(presence.tenant, presence.principal, key=presence.key)
    if standing is None:
        raise KeyInvalid
    return replace(presence, scopes=tuple(scope.value for scope in standing.scopes))
