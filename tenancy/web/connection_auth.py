"""Authentication of long-lived connections by session or key, repeated from time to time."""

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
    http_status = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A principal in a tenant with its scopes at the last check.

    `session` is set for a person, `key` for a program; `reach` None means every run of the tenant.
    """

    tenant: UUID
    principal: UUID
    scopes: tuple[str, ...]
    session: str | None = None
    key: UUID | None = None
    reach: Reach | None = None

    @property
    def is_person(self) -> bool:
        """Return whether the connection is a person's browser and not a program."""
        return self.session is not None

    def needs(self, scope: Scope) -> None:
        """Check that the principal has the scope.

        Raises: Forbidden.
        """
        if scope.value not in self.scopes:
            raise Forbidden(reason=f"this needs the scope {scope.value}")


def get_header(headers: Headers, name: bytes) -> str:
    """Return a header's value, the last one if there are several; "" if there is none."""
    return dict(headers).get(name, b"").decode("latin-1")


def same_origin(headers: Headers) -> bool:
    """Return whether the request comes from a page of this deployment or from a program.

    A program sends a key in the Authorization header, which no page sends by itself.
    """
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
    """Return the principal of `Authorization: Bearer` or of the session cookie.

    `peer` is the remote end of the connection.

    Raises: SignedOut, KeyInvalid, KeyExpired, KeyRevoked, KeyElsewhere; Forbidden for a person without a
    tenant; SecondFactorMissing as `of_session`.
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
    """Return the presence of the program that sent a key."""
    return Presence(
        tenant=who.tenant, principal=who.principal, scopes=who.scopes, key=who.key, reach=who.reach
    )


def of_session(key: str, tenant_id: UUID | None = None) -> Presence:
    """Return the person of a session, in the session's tenant or in the given one.

    Raises: SignedOut, Forbidden; SecondFactorMissing if the tenant's sign-in rules exclude the person.
    """
    store = cast("Callable[[str], Any]", import_module(settings.SESSION_ENGINE).SessionStore)(key)
    person = get_user(cast("Any", SimpleNamespace(session=store)))
    if not isinstance(person, Person) or not person.is_active:
        raise SignedOut
    wanted = str(tenant_id or store.get(CHOSEN, ""))
    open_ones = [one for one in tenants_by_id(tenants_of_person(person.id)) if one.suspended_at is None]
    houses = [one.id for one in open_ones]
    # If the person has left the chosen tenant, the first one is used, as on a page. A tenant that is passed
    # as an argument is never replaced.
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
    """Return the same principal with its current permissions.

    Raises: as `authenticate_connection`, and TenantSuspended.
    """
    check_tenant_open(presence.tenant)
    if presence.session is not None:
        return of_session(presence.session, presence.tenant)
    standing = standing_of(presence.tenant, presence.principal, key=presence.key)
    if standing is None:
        raise KeyInvalid
    return replace(presence, scopes=tuple(scope.value for scope in standing.scopes))
