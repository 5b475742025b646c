"""Authentication of programs by API key: `Authorization: Bearer ilk_…` (R-SEC-2, Z6).

The key is never logged.
"""

from dataclasses import dataclass
from uuid import UUID

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from tenancy.actions import touch_key
from tenancy.actions.platform_admins import touch_platform_key
from tenancy.core.errors import (
    KeyElsewhere,
    KeyExpired,
    KeyInvalid,
    KeyRevoked,
    TenancyError,
    TenantSuspended,
)
from tenancy.core.keys import Key, is_matching_secret, parse_api_key
from tenancy.core.reach import Address, Reach, is_within, reach_of
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import enter_reach, tenant_transaction
from tenancy.models import ApiKey
from tenancy.people.platform_admins import PlatformActor, is_platform_admin
from tenancy.platform_models import PlatformKey
from tenancy.queries import standing_of_key, tenant_of_key
from tenancy.web.client_address import client_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated program; the value of `request.user`.

    `key` is the id of the key that was shown; `reach` None means every run of the tenant.
    """

    principal: UUID
    owner: UUID
    tenant: UUID
    scopes: tuple[str, ...]
    key: UUID | None = None
    reach: Reach | None = None
    is_authenticated: bool = True

    @property
    def pk(self) -> UUID:
        """Return the principal, for code that needs the primary key of a user."""
        return self.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformCaller:
    """An authenticated program of a platform administrator; the value of `request.user`.

    The program acts in no tenant.
    """

    person: UUID
    key: UUID
    is_authenticated: bool = True

    @property
    def pk(self) -> UUID:
        """Return the key, for code that needs the primary key of a user."""
        return self.key

    @property
    def actor(self) -> PlatformActor:
        """Return the actor as the actions take one."""
        return PlatformActor(self.person, self.key)


class KeyAuthentication(BaseAuthentication):
    """Look the key up by its id and compare the secret's hash in constant time."""

    def authenticate(self, request: Request) -> tuple[Caller | PlatformCaller, None] | None:
        """Return the caller, or None without a bearer token; the reach of the key holds from here on.

        Raises: AuthenticationFailed (401), TenantSuspended (403).
        """
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed(str(KeyInvalid()), KeyInvalid.code)
        shown = words[1].decode("ascii", "replace")
        try:
            who = _caller_of_either(shown, _get_client_address(request))
        except TenantSuspended:
            # The key is valid: 403, because authenticating again would not change the result.
            raise
        except TenancyError as error:
            raise AuthenticationFailed(str(error), error.code) from None
        enter_reach(who.reach if isinstance(who, Caller) else None)
        return who, None

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header of a 401 response."""
        return 'Bearer realm="interlock"'


def _get_client_address(request: Request) -> Address | None:
    return client_address(request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_X_FORWARDED_FOR", ""))


def _caller_of_either(text: str, address: Address | None) -> Caller | PlatformCaller:
    """Return the caller of a tenant's key or of a platform key.

    Tenant keys are looked up first, because they are the most frequent.
    """
    try:
        return caller_of(text, address)
    except KeyInvalid:
        found = platform_caller_of(text)
        if found is None:
            raise
        return found


def caller_of(text: str, address: Address | None = None) -> Caller:
    """Return the caller that a key identifies, with its current scopes.

    Raises: KeyInvalid, KeyExpired, KeyRevoked, KeyElsewhere, TenantSuspended.
    """
    key = parse_api_key(text)
    tenant_id = tenant_of_key(key.id) if key is not None else None
    if key is None or tenant_id is None:
        raise KeyInvalid
    with tenant_transaction(tenant_id):
        row = ApiKey.objects.select_related("principal__owner", "tenant").filter(id=key.id).first()
        if row is None or not is_matching_secret(key.secret, bytes(row.secret_hash)):
            raise KeyInvalid
        now = database_now()
        if row.revoked_at is not None or not row.principal.owner.is_active:
            raise KeyRevoked
        if row.expires_at is not None and row.expires_at <= now:
            raise KeyExpired
        if not is_within(address, tuple(row.addresses)):
            raise KeyElsewhere
        if row.tenant.suspended_at is not None:
            raise TenantSuspended(reason=row.tenant.suspended_reason)
        touch_key(row.id, now, row.last_used_at)
        standing = standing_of_key(row, row.principal)
        scopes = tuple(scope.value for scope in standing.scopes)
        return Caller(
            principal=standing.principal, owner=standing.owner, tenant=tenant_id, scopes=scopes, key=row.id,
            reach=reach_of(row.runs, tuple(row.workflows), standing.principal),
        )  # fmt: skip


def platform_caller_of(text: str) -> PlatformCaller | None:
    """Return the platform administrator that a key identifies, or None if it is no platform key.

    Raises: KeyInvalid, KeyExpired; KeyRevoked for a revoked key or one whose person is no longer a platform
    administrator.
    """
    key = parse_api_key(text)
    row = None if key is None else PlatformKey.objects.filter(id=key.id).first()
    if key is None or row is None:
        return None
    _check_platform_key(key, row)
    return PlatformCaller(person=row.person_id, key=row.id)


def _check_platform_key(key: Key, row: PlatformKey) -> None:
    if not is_matching_secret(key.secret, bytes(row.secret_hash)):
        raise KeyInvalid
    now = database_now()
    if row.revoked_at is not None or not is_platform_admin(row.person_id):
        raise KeyRevoked
    if row.expires_at <= now:
        raise KeyExpired
    touch_platform_key(row.id, now, row.last_used_at)
