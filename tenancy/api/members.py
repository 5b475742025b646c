"""People of a tenant for programs: inviting, roles, limits, links and confirmations (R-API-3, R-SEC-1)."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from tenancy.actions.confirmation import confirm_person
from tenancy.actions.people import (
    change_limits,
    deactivate_person,
    hand_over_link,
    invite_member,
    limits_tag,
    remove_role,
)
from tenancy.api.shapes import (
    ROLES,
    InviteBody,
    LinkField,
    MemberField,
    MemberLimitsBody,
    MemberMade,
    RoleBody,
    RoleField,
    limits_of,
    member_field,
    role_field,
)
from tenancy.core.errors import NotFound
from tenancy.core.roles import Role, Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Person
from tenancy.people.member_queries import list_people
from tenancy.people.relations import find_kinship
from tenancy.rest.api_helpers import (
    build_etag_header,
    expected_tag,
    get_caller,
    post_once,
    unless_known,
    uuid_or_none,
)
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import ReasonBody, page_of, validate_input

ROLE = OpenApiParameter(
    "role", {"type": "string", "enum": [role for role, _ in ROLES]}, OpenApiParameter.PATH
)


class ByAdmin(APIView):
    """A door for administrators alone: it names people and their addresses."""

    permission_classes = [make_scope_permission(Scope.ADMIN)]


class Members(ByAdmin):
    """The tenant's people."""

    @extend_schema(operation_id="list_members", responses=page_of(MemberField, "MemberPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page, with their roles and who they are related to."""
        return Response({"results": _list_member_fields(request), "next": None, "previous": None})

    @extend_schema(operation_id="invite_member", request=InviteBody, responses={201: MemberMade})
    def post(self, request: Request) -> Response:
        """Add somebody by their address. The person behind the calling key and they are related for 24 hours.
        Raises InvalidInput (400)."""
        body, who = validate_input(InviteBody, request.data), get_caller(request)

        def invite_person() -> tuple[Person, bool]:
            found = invite_member(
                who.tenant, body["email"], body["name"], Role(body["role"]), limits_of(body),
                by=who.principal, reason=body["reason"],
            )  # fmt: skip
            return found.person, found.new

        return _link_once(request, 201, invite_person, with_member=True)


class OneMember(ByAdmin):
    """One person."""

    @extend_schema(operation_id="get_member", responses=MemberField)
    def get(self, request: Request, person_id: str) -> Response:
        """They, with their roles and who they are related to. Raises NotFound."""
        return Response(_get_member_field(request, uuid_or_none(person_id)))


class MemberLink(ByAdmin):
    """The link for a first password."""

    @extend_schema(operation_id="send_member_link", request=ReasonBody, responses={200: LinkField})
    def post(self, request: Request, person_id: str) -> Response:
        """A new link for somebody who has never signed in, mailed to them where mail is set up. Where it is
        not, it is in this answer and nowhere else. Raises NotFound, LinkRefused (409)."""
        validate_input(ReasonBody, request.data)
        return _link_once(request, 200, lambda: (_get_person(request, person_id), True), with_member=False)


class ConfirmMember(ByAdmin):
    """Confirming a person."""

    @extend_schema(operation_id="confirm_member", request=ReasonBody, responses={200: MemberField})
    def post(self, request: Request, person_id: str) -> Response:
        """Confirm that the account is in its person's own hands, after somebody saw the link for its
        password. Raises NotFound, RelatedToPerson (403), NotSignedIn, NothingToConfirm (409)."""
        reason = validate_input(ReasonBody, request.data)["reason"]
        who = get_caller(request)
        return _apply_person_change(
            request,
            person_id,
            lambda wanted: confirm_person(who.tenant, wanted, by=who.principal, reason=reason),
        )


class DeactivateMember(ByAdmin):
    """Taking every role from a person."""

    @extend_schema(operation_id="deactivate_member", request=ReasonBody, responses={204: None})
    def post(self, request: Request, person_id: str) -> Response:
        """Neither they nor the keys that they answer for do anything here any more. Raises NotFound,
        LastAdmin (409)."""
        reason, who, wanted = (
            validate_input(ReasonBody, request.data)["reason"],
            get_caller(request),
            uuid_or_none(person_id),
        )

        def done() -> StoredResponse:
            if wanted is None:
                raise NotFound
            deactivate_person(who.tenant, wanted, by=who.principal, reason=reason)
            return StoredResponse(204, None)

        return post_once(request, done)


class MemberRoles(ByAdmin):
    """The roles of a person."""

    @extend_schema(operation_id="give_member_role", request=RoleBody, responses={201: MemberField})
    def post(self, request: Request, person_id: str) -> Response:
        """Give a person of this tenant a further role. Raises NotFound, InvalidInput (400)."""
        body, who = validate_input(RoleBody, request.data), get_caller(request)

        def give_role(_: UUID) -> None:
            person = _get_person(request, person_id)
            invite_member(
                who.tenant, person.email, person.name, Role(body["role"]), limits_of(body), by=who.principal,
                reason=body["reason"],
            )  # fmt: skip

        return _apply_person_change(request, person_id, give_role, status=201)


class OneRole(ByAdmin):
    """One role of a person."""

    @extend_schema(
        operation_id="get_member_role", parameters=[ROLE],
        responses={200: RoleField, 304: OpenApiResponse(description="As it was under If-None-Match.")},
    )  # fmt: skip
    def get(self, request: Request, person_id: str, role: str) -> HttpResponseBase | Response:
        """It, with its limits and an ETag. Raises NotFound."""
        member = _get_membership(request, person_id, role)
        return unless_known(request, role_field(member), limits_tag(member))

    @extend_schema(
        operation_id="set_member_limits", parameters=[ROLE], request=MemberLimitsBody, responses=RoleField
    )
    def put(self, request: Request, person_id: str, role: str) -> Response:
        """Set all limits of a role; they hold from the next decision on. Wider ones relate the person behind
        the calling key to this one for 24 hours. With If-Match only those that were looked at. Raises
        NotFound, Stale (412)."""
        body, who = validate_input(MemberLimitsBody, request.data), get_caller(request)
        member = change_limits(
            who.tenant, _get_membership(request, person_id, role).id, limits_of(body), by=who.principal,
            reason=body["reason"], expected=expected_tag(request),
        )  # fmt: skip
        shown = role_field(member)
        return Response(shown, headers=build_etag_header(shown, limits_tag(member)))


class RemoveRole(ByAdmin):
    """Taking a role from a person."""

    @extend_schema(
        operation_id="remove_member_role", parameters=[ROLE], request=ReasonBody, responses={204: None}
    )
    def post(self, request: Request, person_id: str, role: str) -> Response:
        """Their keys lose what it brought. Raises NotFound, LastAdmin (409)."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            member = _get_membership(request, person_id, role)
            remove_role(who.tenant, member.id, by=who.principal, reason=reason)
            return StoredResponse(204, None)

        return post_once(request, build_response)


def _get_person(request: Request, person_id: str) -> Person:
    house, wanted = get_caller(request).tenant, uuid_or_none(person_id)
    if wanted is None:
        raise NotFound
    with tenant_transaction(house):
        found = Person.objects.filter(id=wanted, memberships__tenant_id=house).distinct().first()
    if found is None:
        raise NotFound
    return found


def _get_membership(request: Request, person_id: str, role: str) -> Membership:
    wanted = uuid_or_none(person_id)
    if wanted is None:
        raise NotFound
    with tenant_transaction(get_caller(request).tenant):
        found = Membership.objects.filter(person_id=wanted, role=role[:16]).first()
    if found is None:
        raise NotFound
    return found


def _list_member_fields(request: Request, person_id: UUID | None = None) -> list[dict[str, Any]]:
    """Everybody, or one of them."""
    who = get_caller(request)
    with tenant_transaction(who.tenant):
        found = list_people(person_id)
        kinship = find_kinship(who.principal, who.owner, [one.person.id for one in found])
        return [member_field(one, kinship[one.person.id]) for one in found]


def _get_member_field(request: Request, person_id: UUID | None) -> dict[str, Any]:
    found = [] if person_id is None else _list_member_fields(request, person_id)
    if not found:
        raise NotFound
    return found[0]


def _apply_person_change(
    request: Request, person_id: str, change: Callable[[UUID], object], *, status: int = 200
) -> Response:
    """Change something about a person, once, and answer with how they stand then."""
    wanted = uuid_or_none(person_id)

    def done() -> StoredResponse:
        if wanted is None:
            raise NotFound
        change(wanted)
        return StoredResponse(status, _get_member_field(request, wanted))

    return post_once(request, done)


def _link_once(
    request: Request, status: int, find: Callable[[], tuple[Person, bool]], *, with_member: bool
) -> Response:
    """Answer with the link of a person, where they need one. What an Idempotency-Key keeps of the answer does
    not have it."""
    who, links = get_caller(request), []

    def made() -> StoredResponse:
        person, needs_link = find()
        delivery = "none"
        if needs_link:
            origin = request.build_absolute_uri("/").rstrip("/")
            path = hand_over_link(who.tenant, person, by=who.principal, origin=origin)
            delivery = "shown" if path else "mailed"
            links.extend([request.build_absolute_uri(path)] if path else [])
        shown = {"member": _get_member_field(request, person.id)} if with_member else {}
        return StoredResponse(status, {**shown, "delivery": delivery, "link": None})

    response = post_once(request, made)
    if links:
        response.data = {**response.data, "link": links[0]}
    return response
