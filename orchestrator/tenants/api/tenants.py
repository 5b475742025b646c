"""The API of tenants for platform administrators (R-SEC-10).

It lists, opens, reads, changes, suspends and resumes tenants. Of a tenant's content it returns only counts
and the address that was invited from here.
"""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from budgets.core.ceilings import DEFAULT_TIER, TIERS
from orchestrator.tenants.actions.tenants import NewTenant, open_tenant, suspend_with_runs, update_tenant
from orchestrator.tenants.queries.tenants import count_runs_to_pause
from tenancy.actions.first_administrator import FirstAdministrator, invite_first_administrator
from tenancy.actions.tenants import (
    CHANGEABLE,
    HIGHEST_AUTONOMY,
    LOWEST_AUTONOMY,
    resume_tenant,
    tenant_tag,
)
from tenancy.api.shapes import LinkField
from tenancy.core.errors import NotFound
from tenancy.db.ids import fresh_id
from tenancy.models import Tenant
from tenancy.people.platform_admins import Administrators, count_administrators, first_administrator_of
from tenancy.queries import tenant_by_slug
from tenancy.rest.api_helpers import build_etag_header, expected_tag, paginate_rows, unless_known
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.platform_api import ByPlatform, platform_caller, post_once_about
from tenancy.rest.serializer_fields import (
    FormattedCharField,
    PageQuery,
    ReasonBody,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    format_timestamp,
    page_of,
    path_name,
    validate_input,
)

TIER_NAMES = [(tier, tier) for tier in TIERS]
SLUG = r"^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$"


class TenantRow(serializers.Serializer[Any]):
    """A tenant. `suspended_at` is null while people and keys act in it; `administrators_waiting` of its
    `administrators` have never signed in."""

    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()
    time_zone = serializers.CharField()
    tier = serializers.CharField()
    highest_autonomy_tier = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    suspended_at = serializers.DateTimeField(allow_null=True)
    suspended_reason = serializers.CharField(allow_blank=True)
    administrators = serializers.IntegerField()
    administrators_waiting = serializers.IntegerField()


class TenantField(TenantRow):
    """A tenant, the address that was invited last to administer it first (null where none is on record), and
    how many runs suspending it asks to pause."""

    first_administrator = serializers.CharField(allow_null=True)
    runs_to_pause = serializers.IntegerField()


class TenantMade(LinkField):
    """A tenant that was opened, and what became of its first administrator's link."""

    tenant = TenantField()


class TenantSettings(StrictSerializer):
    """What a tenant is called and may do."""

    name = StrictCharField(max_length=200)
    time_zone = StrictCharField(max_length=64, required=False, default="UTC")
    tier = serializers.ChoiceField(choices=TIER_NAMES, required=False, default=DEFAULT_TIER)
    highest_autonomy_tier = StrictIntegerField(
        min_value=LOWEST_AUTONOMY, max_value=HIGHEST_AUTONOMY, required=False, default=6
    )


class AdministratorBody(StrictSerializer):
    """The address and the name of a tenant's first administrator. Who is known already keeps name and
    password."""

    email = serializers.EmailField(max_length=254)
    name = StrictCharField(max_length=200)


class TenantBody(TenantSettings):
    """A tenant to open, with the address and the name of its first administrator."""

    slug = FormattedCharField(SLUG)
    administrator = serializers.EmailField(max_length=254)
    administrator_name = StrictCharField(max_length=200)


class TenantChange(StrictSerializer):
    """What to change of a tenant; what is left out stays."""

    name = StrictCharField(max_length=200, required=False)
    time_zone = StrictCharField(max_length=64, required=False)
    tier = serializers.ChoiceField(choices=TIER_NAMES, required=False)
    highest_autonomy_tier = StrictIntegerField(
        min_value=LOWEST_AUTONOMY, max_value=HIGHEST_AUTONOMY, required=False
    )
    reason = StrictCharField(max_length=500)


class SuspendBody(StrictSerializer):
    """Why a tenant is suspended: its people and programs are told."""

    reason = StrictCharField(max_length=500)


class Tenants(ByPlatform):
    """The tenants of the deployment."""

    @extend_schema(
        operation_id="list_tenants", parameters=[PageQuery], responses=page_of(TenantRow, "TenantPage")
    )
    def get(self, request: Request) -> Response:
        """A page of all of them, the one that was opened last first."""
        validate_input(PageQuery, request.query_params)
        answer = paginate_rows(request, Tenant.objects.all(), lambda row: row)
        rows: list[Tenant] = answer.data["results"]
        counts = count_administrators(platform_caller(request).person, [row.id for row in rows])
        answer.data["results"] = [
            _serialize_tenant_row(row, counts.get(row.id, Administrators())) for row in rows
        ]
        return answer

    @extend_schema(operation_id="open_tenant", request=TenantBody, responses={201: TenantMade})
    def post(self, request: Request) -> Response:
        """Open a tenant with the tools, boundaries, prompts and the general workflow that ship, and invite
        its first administrator. Raises InvalidInput (400)."""
        body, who, tenant_id = validate_input(TenantBody, request.data), platform_caller(request), fresh_id()
        links: list[str] = []

        def build_response() -> StoredResponse:
            made = open_tenant(
                NewTenant(**body), by=who.actor, tenant_id=tenant_id, origin=_get_request_origin(request)
            )  # fmt: skip
            shown = {"tenant": _serialize_tenant(request, made.tenant)}
            return StoredResponse(201, shown | _serialize_link_delivery(request, made.administrator, links))

        return _with_link(post_once_about(request, tenant_id, build_response), links)


class OneTenant(ByPlatform):
    """One tenant."""

    @extend_schema(
        operation_id="get_tenant",
        responses={200: TenantField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )
    def get(self, request: Request, tenant_slug: str) -> HttpResponseBase | Response:
        """It, with an ETag that changes with it. Raises NotFound."""
        row = _get_tenant(tenant_slug)
        return unless_known(request, _serialize_tenant(request, row), tenant_tag(row))

    @extend_schema(operation_id="change_tenant", request=TenantChange, responses=TenantField)
    def patch(self, request: Request, tenant_slug: str) -> Response:
        """Change name, time zone, tier or highest autonomy. With If-Match only what was looked at. Raises
        NotFound, InvalidInput (400), Stale (412)."""
        body = validate_input(TenantChange, request.data)
        row = update_tenant(
            _get_tenant(tenant_slug).id, {name: body[name] for name in CHANGEABLE if name in body},
            by=platform_caller(request).actor, reason=body["reason"], expected=expected_tag(request),
        )  # fmt: skip
        shown = _serialize_tenant(request, row)
        return Response(shown, headers=build_etag_header(shown, tenant_tag(row)))


class SuspendTenant(ByPlatform):
    """Suspending a tenant."""

    @extend_schema(operation_id="suspend_tenant", request=SuspendBody, responses={200: TenantField})
    def post(self, request: Request, tenant_slug: str) -> Response:
        """Refuse its people and keys and ask its runs to pause; `runs_to_pause` of the tenant says how many
        beforehand. The same again changes nothing. Raises NotFound."""
        reason, row = validate_input(SuspendBody, request.data)["reason"], _get_tenant(tenant_slug)

        def build_response() -> StoredResponse:
            suspend_with_runs(row.id, by=platform_caller(request).actor, reason=reason)
            return StoredResponse(200, _serialize_tenant(request, _get_tenant(tenant_slug)))

        return post_once_about(request, row.id, build_response)


class ResumeTenant(ByPlatform):
    """Resuming a tenant."""

    @extend_schema(operation_id="resume_tenant", request=ReasonBody, responses={200: TenantField})
    def post(self, request: Request, tenant_slug: str) -> Response:
        """Let its people and keys act again; an operator of the tenant resumes its runs. The same again
        changes nothing. Raises NotFound."""
        reason, row = validate_input(ReasonBody, request.data)["reason"], _get_tenant(tenant_slug)

        def build_response() -> StoredResponse:
            resume_tenant(row.id, by=platform_caller(request).actor, reason=reason)
            return StoredResponse(200, _serialize_tenant(request, _get_tenant(tenant_slug)))

        return post_once_about(request, row.id, build_response)


class InviteAdministrator(ByPlatform):
    """Inviting the first administrator again."""

    @extend_schema(
        operation_id="invite_tenant_administrator", request=AdministratorBody, responses={200: LinkField}
    )
    def post(self, request: Request, tenant_slug: str) -> Response:
        """A new link for the first administrator, or another one in their place, while no administrator of
        the tenant has signed in. Raises NotFound, InvalidInput (400), AdministratorThere (409)."""
        body, row, links = (
            validate_input(AdministratorBody, request.data),
            _get_tenant(tenant_slug),
            list[str](),
        )

        def build_response() -> StoredResponse:
            found = invite_first_administrator(
                row.id, body["email"], body["name"], by=platform_caller(request).actor,
                origin=_get_request_origin(request),
            )  # fmt: skip
            return StoredResponse(200, _serialize_link_delivery(request, found, links))

        return _with_link(post_once_about(request, row.id, build_response), links)


def _get_tenant(slug: str) -> Tenant:
    found = tenant_by_slug(path_name(slug))
    if found is None:
        raise NotFound
    return found


def _get_request_origin(request: Request) -> str:
    return request.build_absolute_uri("/").rstrip("/")


def _serialize_link_delivery(request: Request, found: FirstAdministrator, links: list[str]) -> dict[str, Any]:
    """Serialize the delivery of the link. The response stored for an Idempotency-Key does not contain it."""
    if found.path:
        links.append(request.build_absolute_uri(found.path))
    delivery = "mailed" if found.mailed else "shown" if found.path else "none"
    return {"delivery": delivery, "link": None}


def _with_link(answer: Response, links: list[str]) -> Response:
    if links:
        answer.data = {**answer.data, "link": links[0]}
    return answer


def _serialize_tenant_row(row: Tenant, counts: Administrators) -> dict[str, Any]:
    return {
        "id": str(row.id), "slug": row.slug, "name": row.name, "time_zone": row.time_zone, "tier": row.tier,
        "highest_autonomy_tier": row.highest_autonomy_tier, "created_at": format_timestamp(row.created_at),
        "suspended_at": format_timestamp(row.suspended_at), "suspended_reason": row.suspended_reason,
        "administrators": counts.total, "administrators_waiting": counts.waiting,
    }  # fmt: skip


def _serialize_tenant(request: Request, row: Tenant) -> dict[str, Any]:
    counts = count_administrators(platform_caller(request).person, [row.id])
    return {
        **_serialize_tenant_row(row, counts.get(row.id, Administrators())),
        "first_administrator": first_administrator_of(row.id) or None,
        "runs_to_pause": 0 if row.suspended_at is not None else count_runs_to_pause(row.id),
    }
