"""Keys for programs: made and rotated, shown once, limited and revoked (R-API-3, R-SEC-2, R-SEC-11)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from tenancy.actions import NewKey, revoke_key
from tenancy.actions.keys import make_key, rotate_key
from tenancy.api.shapes import KeyBody, KeyField, KeyMade, RotateBody, key_field, key_limits_of
from tenancy.core.errors import NotFound
from tenancy.core.roles import Role, Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import ApiKey
from tenancy.rest.api_helpers import get_caller, paginate_rows, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import PageQuery, ReasonBody, page_of, validate_input


class ByInspection(APIView):
    """A door that reads with the scope `inspect` and writes with `admin`."""

    def get_permissions(self) -> list[BasePermission]:
        """INSPECT to look, ADMIN to change."""
        reads = self.request.method in {"GET", "HEAD", "OPTIONS"}
        return [make_scope_permission(Scope.INSPECT if reads else Scope.ADMIN)()]


class Keys(ByInspection):
    """The tenant's keys."""

    @extend_schema(operation_id="list_keys", parameters=[PageQuery], responses=page_of(KeyField, "KeyPage"))
    def get(self, request: Request) -> Response:
        """The keys of the tenant, newest first; revoked and expired ones stay. No secret is among them."""
        with tenant_transaction(get_caller(request).tenant):
            return paginate_rows(request, ApiKey.objects.select_related("principal__owner"), key_field)

    @extend_schema(operation_id="make_key", request=KeyBody, responses={201: KeyMade})
    def post(self, request: Request) -> Response:
        """Make one; its secret is in this answer and nowhere else. The person behind the calling key sees it,
        so what the new key does counts as theirs too. It reaches no further than the calling key. Raises
        InvalidInput (400), KeyTooWide (403), RoleLacking (409)."""
        body, who = validate_input(KeyBody, request.data), get_caller(request)
        days = body["expires_in_days"]

        def made() -> NewKey:
            return make_key(
                who.tenant, Role(body["role"]), label=body["name"], by=who.principal, by_key=who.key,
                answers=body["owner"] == "me", limits=key_limits_of(body),
                expires_in=None if days is None else timedelta(days=days),
            )  # fmt: skip

        return _secret_once(request, 201, made)


class OneKey(ByInspection):
    """One key."""

    @extend_schema(operation_id="get_key", responses=KeyField)
    def get(self, request: Request, key_id: str) -> Response:
        """It, without its secret. Raises NotFound."""
        return Response(_get_key_field(get_caller(request).tenant, uuid_or_none(key_id)))


class RotateKey(ByInspection):
    """Rotating a key."""

    @extend_schema(operation_id="rotate_key", request=RotateBody, responses={200: KeyMade})
    def post(self, request: Request, key_id: str) -> Response:
        """A new secret with the same role and limits, for the same program: its runs go on. Only the person
        who answers for a key that decides or administers rotates it. Raises NotFound, KeyTooWide (403),
        RoleLacking, KeyGone (409)."""
        body, who, wanted = (
            validate_input(RotateBody, request.data),
            get_caller(request),
            uuid_or_none(key_id),
        )

        def rotate_wanted_key() -> NewKey:
            if wanted is None:
                raise NotFound
            overlap = timedelta(hours=body["overlap_hours"])
            return rotate_key(who.tenant, wanted, overlap=overlap, by=who.principal, by_key=who.key)

        return _secret_once(request, 200, rotate_wanted_key)


class RevokeKey(ByInspection):
    """Revoking a key."""

    @extend_schema(operation_id="revoke_key", request=ReasonBody, responses={200: KeyField})
    def post(self, request: Request, key_id: str) -> Response:
        """Whoever uses it is refused from now on; the same again keeps the first time. Raises NotFound."""
        reason, who, wanted = (
            validate_input(ReasonBody, request.data)["reason"],
            get_caller(request),
            uuid_or_none(key_id),
        )

        def build_response() -> StoredResponse:
            if wanted is None:
                raise NotFound
            revoke_key(who.tenant, wanted, by=who.principal, reason=reason)
            return StoredResponse(200, _get_key_field(who.tenant, wanted))

        return post_once(request, build_response)


def _secret_once(request: Request, status: int, make: Callable[[], NewKey]) -> Response:
    """Answer with a new secret. What an Idempotency-Key keeps of the answer does not have it: the secret is
    stored as a hash alone."""
    clear: list[str] = []

    def made() -> StoredResponse:
        new = make()
        clear.append(new.clear)
        return StoredResponse(
            status, {**_get_key_field(get_caller(request).tenant, new.key.id), "secret": None}
        )

    response = post_once(request, made)
    if clear:
        response.data = {**response.data, "secret": clear[0]}
    return response


def _get_key_field(tenant_id: UUID, key_id: UUID | None) -> dict[str, Any]:
    if key_id is None:
        raise NotFound
    with tenant_transaction(tenant_id):
        row = ApiKey.objects.select_related("principal__owner").filter(id=key_id).first()
        if row is None:
            raise NotFound
        return key_field(row)
