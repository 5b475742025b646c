"""The API by which a second administrator settles a proposal to weaken a safeguard (R-TOOL-4, P4)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.llm.api import ModelsField
from orchestrator.policies.actions.boundaries import BoundaryPublication
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.policies.api.boundaries import BoundaryField, boundary_field
from orchestrator.policies.api.policies import WordBody
from orchestrator.publishing.api.catalog import ScopedAPIView, serialize_tool_definition
from orchestrator.publishing.api.catalog_serializers import ToolField
from orchestrator.spending.api.ceilings import CeilingsField, ceilings_field
from orchestrator.tenants.api.sign_in_rules import SignInRulesField, rules_field
from orchestrator.tools.actions.change_requests import Agreed, agree_to_tool
from orchestrator.tools.actions.relaxation_proposals import drop_tool_proposal
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.api.destination_serializers import DatabasesField, MailField, WebField
from orchestrator.tools.api.destinations import version_field
from orchestrator.tools.api.server_serializers import PlacesField
from orchestrator.tools.api.tool_servers import places_field
from orchestrator.tools.queries.destinations import OutsideNow
from orchestrator.tools.queries.relaxation_proposals import tool_proposals
from orchestrator.tools.queries.tool_servers import PlacesNow
from orchestrator.tools.queries.tools import ToolNow
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.sign_in_rules import RulesNow
from tenancy.rest.api_helpers import get_caller, post_once, uuid_or_none
from tenancy.rest.authentication import Caller
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import page_of, validate_input

AGREED = PolymorphicProxySerializer(
    component_name="AgreedTo",
    serializers=[
        ToolField,
        WebField,
        DatabasesField,
        MailField,
        ModelsField,
        PlacesField,
        CeilingsField,
        BoundaryField,
        SignInRulesField,
    ],
    resource_type_field_name=None,
)


class ToolProposals(ScopedAPIView):
    """What waits for a second administrator."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(
        operation_id="list_change_requests", responses=page_of(ToolProposalField, "ToolProposalPage")
    )
    def get(self, request: Request) -> Response:
        """All that wait, oldest first, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [proposal_field(row) for row in tool_proposals()]
        return Response({"results": rows, "next": None, "previous": None})


class AgreeToTool(ScopedAPIView):
    """Agreeing to what guards a tool less."""

    @extend_schema(operation_id="agree_to_tool", request=WordBody, responses=AGREED)
    def post(self, request: Request, tool_proposal_id: str) -> Response:
        """A second person's yes: it is done. Raises NotFound, OwnProposal (403),
        ProposalSettled (409), Stale (412)."""
        reason, who = validate_input(WordBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            waiting = uuid_or_none(tool_proposal_id)
            now = agree_to_tool(who.tenant, waiting, who=_build_requester(who), reason=reason)
            return StoredResponse(200, _serialize_applied_change(who.tenant, now))

        return post_once(request, build_response)


class DropToolProposal(ScopedAPIView):
    """Refusing what guards a tool less, or taking one's own back."""

    @extend_schema(operation_id="drop_change_request", request=WordBody, responses={204: None})
    def post(self, request: Request, tool_proposal_id: str) -> Response:
        """It waits no longer. Raises NotFound, ProposalSettled (409)."""
        reason, who = validate_input(WordBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            drop_tool_proposal(
                who.tenant, uuid_or_none(tool_proposal_id), who=_build_requester(who), reason=reason
            )
            return StoredResponse(204, {})

        return post_once(request, build_response)


def _serialize_applied_change(tenant_id: UUID, now: Agreed) -> dict[str, Any]:
    """Serialize the setting now in force, in the form of its own endpoint."""
    if isinstance(now, ToolNow):
        return serialize_tool_definition(now)
    if isinstance(now, PlacesNow):
        return places_field(now)
    if isinstance(now, RulesNow):
        return rules_field(now)
    if isinstance(now, BoundaryPublication):
        with tenant_transaction(tenant_id):
            return boundary_field(now)
    return version_field(now) if isinstance(now, OutsideNow) else ceilings_field(tenant_id)[1]


def _build_requester(found: Caller) -> ChangeAuthor:
    return ChangeAuthor(principal=found.principal, owner=found.owner)
