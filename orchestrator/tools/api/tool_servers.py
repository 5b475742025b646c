"""Tool servers, tools without code, private places and secrets, for programs (R-TOOL-20, 21, R-SEC-4)."""

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import ReasonBody, format_timestamp
from orchestrator.core.tools.http_tool import operation_of
from orchestrator.core.tools.registration import asked_admission, asked_declaration
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.publishing.api.catalog import ScopedAPIView, serialize_tool_definition
from orchestrator.publishing.api.catalog_serializers import ToolField
from orchestrator.tenants.actions.limit_changes import ask_for_places
from orchestrator.tools.actions.change_requests import ask_to_admit, ask_to_declare
from orchestrator.tools.actions.credentials import keep_credential
from orchestrator.tools.actions.relaxation_proposals import Asked
from orchestrator.tools.actions.tool_servers import (
    NewServer,
    add_server,
    look_at_server,
    quarantine_tool,
    remove_server,
)
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.api.server_serializers import (
    AdmitBody,
    HttpOperationBody,
    HttpToolBody,
    PlacesBody,
    PlacesField,
    QuarantineBody,
    SecretBody,
    SecretRow,
    ServerBody,
    ServerField,
    ServerRow,
)
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.models.tool_server import ToolServer
from orchestrator.tools.queries.tool_servers import (
    OfferedTool,
    PlacesNow,
    ServerNow,
    offered_by,
    places_now,
    server_of,
    servers_now,
)
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller, key_of, post_once
from tenancy.rest.authentication import Caller
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import faults_within, page_of, path_name, validate_input
from tenancy.secret_store import Renewal, revoke_secret, secrets_of

DECLARED = PolymorphicProxySerializer(
    component_name="DeclaredTool",
    serializers=[HttpToolBody, HttpOperationBody],
    resource_type_field_name=None,
)


class ToolServers(ScopedAPIView):
    """The tool servers of the tenant."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="list_mcp_servers", responses=page_of(ServerRow, "ToolServerPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [_serialize_server_row(one) for one in servers_now()]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="add_mcp_server", request=ServerBody, responses={201: ServerField})
    def post(self, request: Request) -> Response:
        """Add one; it is looked at by a request of its own. Raises InvalidInput, EgressRefused (422),
        NameTaken (409)."""
        body, who = validate_input(ServerBody, request.data), get_caller(request)
        reason = body.pop("reason")

        def build_response() -> StoredResponse:
            server = add_server(who.tenant, NewServer(**body), by=who.principal, reason=reason)
            return StoredResponse(201, _serialize_server(who.tenant, server.slug))

        return post_once(request, build_response)


class OneToolServer(ScopedAPIView):
    """One tool server."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="get_mcp_server", responses=ServerField)
    def get(self, request: Request, server: str) -> Response:
        """It, with every tool it offers: what it is now, what was admitted, and the difference. Raises
        NotFound."""
        return Response(_serialize_server(get_caller(request).tenant, path_name(server)))


class Refresh(ScopedAPIView):
    """Looking at a tool server."""

    @extend_schema(operation_id="refresh_mcp_server", request=ReasonBody, responses={200: ServerField})
    def post(self, request: Request, server: str) -> Response:
        """Ask it what it offers now; new and changed tools are quarantined. Raises NotFound,
        ServerUnreachable (424), EgressRefused (422)."""
        validate_input(ReasonBody, request.data)
        who = get_caller(request)

        def build_response() -> StoredResponse:
            look_at_server(who.tenant, path_name(server), by=who.principal)
            return StoredResponse(200, _serialize_server(who.tenant, server))

        return post_once(request, build_response)


class Admit(ScopedAPIView):
    """Admitting a server's tool."""

    @extend_schema(
        operation_id="admit_server_tool", request=AdmitBody,
        responses={200: ToolField, 202: ToolProposalField},
    )  # fmt: skip
    def post(self, request: Request, server: str) -> Response:
        """Admit a tool as it was seen: a version of it. What guards it less than it did, or than the tool
        looks like, waits for a second administrator, where there is one (202). Raises NotFound, Stale (412),
        InvalidInput (400), ProposalOpen (409)."""
        body, who = validate_input(AdmitBody, request.data), get_caller(request)
        admission = asked_admission(body["admission"])

        def build_response() -> StoredResponse:
            with faults_within("admission"):
                found = ask_to_admit(
                    who.tenant,
                    path_name(server),
                    body["tool"],
                    body["seen"],
                    admission,
                    who=_build_requester(who),
                    reason=body["reason"],
                )
            return _build_tool_response(found)

        return post_once(request, build_response)


class QuarantineTool(ScopedAPIView):
    """Quarantining a server's tool."""

    @extend_schema(
        operation_id="quarantine_server_tool", request=QuarantineBody, responses={200: ServerField}
    )
    def post(self, request: Request, server: str) -> Response:
        """Put an admitted tool back into quarantine, for runs under way too. Raises NotFound."""
        body, who = validate_input(QuarantineBody, request.data), get_caller(request)

        def build_response() -> StoredResponse:
            quarantine_tool(
                who.tenant, path_name(server), body["tool"], by=who.principal, reason=body["reason"]
            )
            return StoredResponse(200, _serialize_server(who.tenant, server))

        return post_once(request, build_response)


class RemoveToolServer(ScopedAPIView):
    """Removing a tool server."""

    @extend_schema(operation_id="remove_mcp_server", request=ReasonBody, responses={200: ServerRow})
    def post(self, request: Request, server: str) -> Response:
        """Remove it; its tools take no further call. Raises NotFound."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            with tenant_transaction(who.tenant):
                row = server_of(path_name(server))
            remove_server(who.tenant, row.slug, by=who.principal, reason=reason)
            return StoredResponse(200, _serialize_server_row(ServerNow(row=row, states={})))

        return post_once(request, build_response)


class HttpTools(ScopedAPIView):
    """Tools that are one HTTP request."""

    @extend_schema(
        operation_id="declare_http_tool", request=DECLARED,
        responses={201: ToolField, 202: ToolProposalField},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Declare one, by its request or by an operation of an OpenAPI document; what guards less waits for a
        second administrator, where there is one (202). Raises InvalidInput (400),
        DefinitionRefused, EgressRefused (422), NameTaken (409)."""
        by_operation = isinstance(request.data, dict) and "openapi" in request.data
        body, who = (
            validate_input(HttpOperationBody if by_operation else HttpToolBody, request.data),
            get_caller(request),
        )
        given = dict(body["declaration"])
        if by_operation:
            found = operation_of(body["openapi"], body["operation"], server=body.get("server", ""))
            own = given.get("request") or {}
            given = {
                "description": found.description, "input_schema": found.input_schema,
                "output_schema": found.output_schema, **given,
                "request": {**found.request.model_dump(), **own},
            }  # fmt: skip
        with faults_within("declaration"):
            declaration = asked_declaration(given)

        def made() -> StoredResponse:
            with faults_within("declaration"):
                found = ask_to_declare(
                    who.tenant, declaration, who=_build_requester(who), reason=body["reason"]
                )
            return _build_tool_response(found, made=201)

        return post_once(request, made)


class PrivatePlacesDoor(ScopedAPIView):
    """The private places that tools may reach."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="get_private_places", responses=PlacesField)
    def get(self, request: Request) -> Response:
        """The list in force, with its version as the ETag."""
        with tenant_transaction(get_caller(request).tenant):
            return _build_private_hosts_response(places_now())

    @extend_schema(
        operation_id="set_private_places", request=PlacesBody,
        responses={200: PlacesField, 202: ToolProposalField},
    )  # fmt: skip
    def put(self, request: Request) -> Response:
        """Make exactly these the list, from the next call on. One with more on it waits for a second
        administrator, where there is one (202). With If-Match only the version that was looked at. Raises
        InvalidInput (400), ProposalOpen (409), Stale (412)."""
        body, who = validate_input(PlacesBody, request.data), get_caller(request)
        now = ask_for_places(
            who.tenant, tuple(body["places"]), expected=expected_version(request), who=_build_requester(who),
            reason=body["reason"],
        )  # fmt: skip
        if isinstance(now, ToolProposal):
            return Response(proposal_field(now), status=202)
        return _build_private_hosts_response(now)


class Secrets(ScopedAPIView):
    """The secrets of the tenant: names and origins, never a value."""

    reading = make_scope_permission(Scope.ADMIN)

    @extend_schema(operation_id="list_secrets", responses=page_of(SecretRow, "SecretPage"))
    def get(self, request: Request) -> Response:
        """All of them by name, in one page."""
        rows = [_serialize_secret(one) for one in secrets_of(get_caller(request).tenant)]
        return Response({"results": rows, "next": None, "previous": None})

    @extend_schema(operation_id="keep_secret", request=SecretBody, responses={201: SecretRow})
    def post(self, request: Request) -> Response:
        """Keep one, or replace the one of this name; its value is never shown again. Raises InvalidInput."""
        # Twice is as once, and no digest of a secret is kept beside it: the key is read and not claimed.
        key_of(request)
        body, who = validate_input(SecretBody, request.data), get_caller(request)
        renewal = Renewal(**body["renewal"]) if body["renewal"] is not None else None
        made = keep_credential(
            who.tenant, body["name"], body["value"], origin=body["origin"], by=who.principal,
            reason=body["reason"], expires_at=body["expires_at"], renewal=renewal,
        )  # fmt: skip
        return Response(_serialize_secret(made), status=201)


class RevokeSecret(ScopedAPIView):
    """Taking a secret out of use."""

    @extend_schema(operation_id="revoke_secret", request=ReasonBody, responses={204: None})
    def post(self, request: Request, secret: str) -> Response:
        """From the next call on: what names it is refused. Raises NotFound."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            revoke_secret(who.tenant, path_name(secret), by=who.principal, reason=reason)
            return StoredResponse(204, None)

        return post_once(request, build_response)


def _build_requester(found: Caller) -> ChangeAuthor:
    return ChangeAuthor(principal=found.principal, owner=found.owner)


def _build_tool_response(found: Asked, *, made: int = 200) -> StoredResponse:
    if isinstance(found, ToolProposal):
        return StoredResponse(202, proposal_field(found))
    return StoredResponse(made, serialize_tool_definition(found))


def _serialize_server_row(one: ServerNow) -> dict[str, Any]:
    row = one.row
    return {
        "name": row.slug,
        "kind": row.kind,
        "address": row.address,
        "origin": row.origin,
        "secret": row.secret,
        "protocol": row.protocol,
        "server": row.named,
        "looked_at": format_timestamp(row.looked_at),
        "fault": row.fault,
        "tools": one.states,
    }


def _serialize_server(tenant_id: Any, slug: str) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        server: ToolServer = server_of(slug)
        offered = offered_by(server)
        states: dict[str, int] = {}
        for one in offered:
            states[one.row.state] = states.get(one.row.state, 0) + 1
        return {
            **_serialize_server_row(ServerNow(row=server, states=states)),
            "offered": [_serialize_offered_tool(one) for one in offered],
        }


def _serialize_offered_tool(one: OfferedTool) -> dict[str, Any]:
    row = one.row
    return {
        "tool": row.tool, "name": row.name, "state": row.state, "why": row.why, "seen": row.seen,
        "admitted": row.admitted, "since": format_timestamp(row.since), "warnings": list(one.warnings),
        "definition": one.now.model_dump(mode="json") if one.now is not None else None,
        "before": one.before, "after": one.after,
    }  # fmt: skip


def _build_private_hosts_response(now: PlacesNow) -> Response:
    return Response(places_field(now), headers={"ETag": f'"{now.version}"'})


def places_field(now: PlacesNow) -> dict[str, Any]:
    """The list as the API says it."""
    return {
        "places": list(now.places),
        "version": now.version,
        "reason": now.reason,
        "at": format_timestamp(now.at),
    }


def _serialize_secret(one: Any) -> dict[str, Any]:
    return {
        "name": one.name, "origin": one.origin, "created_at": format_timestamp(one.created_at),
        "expires_at": format_timestamp(one.expires_at) if one.expires_at is not None else None,
        "renews_at": one.renews_at,
    }  # fmt: skip
