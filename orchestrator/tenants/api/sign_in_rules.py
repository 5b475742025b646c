"""A tenant's rules of signing in, for programs (R-SEC-11). The rules hold for people in browsers alone."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import format_timestamp
from orchestrator.policies.actions.dual_control import ChangeAuthor
from orchestrator.publishing.api.catalog import ScopedAPIView
from orchestrator.tenants.actions.limit_changes import ask_for_sign_in_rules
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.models.tool_proposal import ToolProposal
from tenancy.actions.sign_in_rules import read_rules, rules_document
from tenancy.core.roles import Role, Scope
from tenancy.core.sign_in.rules import LONGEST_MINUTES, Area
from tenancy.db.tenant_context import tenant_transaction
from tenancy.people.sign_in_rules import RulesNow, sign_in_rules_now
from tenancy.rest.api_helpers import build_etag_header, expected_version, get_caller, unless_known
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    validate_input,
)

ROLES = tuple(role.value for role in Role)
AREAS = tuple(area.value for area in Area)


class SignInRulesField(serializers.Serializer[Any]):
    """The rules in force: the roles that need a second factor, and the kinds of change before which it is
    asked for again where it was not shown within `minutes`. Version 0: nobody set any."""

    second_factor = serializers.ListField(child=serializers.ChoiceField(choices=ROLES))
    ask_again = serializers.ListField(child=serializers.ChoiceField(choices=AREAS))
    minutes = serializers.IntegerField()
    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class SignInRulesBody(StrictSerializer):
    """All of the rules, and why."""

    second_factor = serializers.ListField(child=serializers.ChoiceField(choices=ROLES), max_length=len(ROLES))
    ask_again = serializers.ListField(child=serializers.ChoiceField(choices=AREAS), max_length=len(AREAS))
    minutes = StrictIntegerField(min_value=1, max_value=LONGEST_MINUTES)
    reason = StrictCharField(max_length=500)


class SignInRulesDoor(ScopedAPIView):
    """The rules of signing in of the caller's tenant."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(
        operation_id="get_sign_in_rules",
        responses={
            200: SignInRulesField, 304: OpenApiResponse(description="As it was under If-None-Match.")
        },
    )  # fmt: skip
    def get(self, request: Request) -> HttpResponseBase | Response:
        """The rules in force, with an ETag that changes with them."""
        with tenant_transaction(get_caller(request).tenant):
            now = sign_in_rules_now()
        return unless_known(request, rules_field(now), str(now.version))

    @extend_schema(
        operation_id="set_sign_in_rules", request=SignInRulesBody,
        responses={200: SignInRulesField, 202: ToolProposalField},
    )  # fmt: skip
    def put(self, request: Request) -> Response:
        """Make these the rules, from everybody's next request on. Rules that ask for less wait for a second
        administrator, where there is one (202). With If-Match only over the version that was looked at.
        Raises InvalidInput (400), ProposalOpen (409), Stale (412)."""
        body, who = validate_input(SignInRulesBody, request.data), get_caller(request)
        now = ask_for_sign_in_rules(
            who.tenant, read_rules(body), expected=expected_version(request),
            who=ChangeAuthor(principal=who.principal, owner=who.owner), reason=body["reason"],
        )  # fmt: skip
        if isinstance(now, ToolProposal):
            return Response(proposal_field(now), status=202)
        shown = rules_field(now)
        return Response(shown, headers=build_etag_header(shown, str(now.version)))


def rules_field(now: RulesNow) -> dict[str, Any]:
    """The rules as the API says them."""
    return {
        **rules_document(now.rules),
        "version": now.version,
        "reason": now.reason,
        "at": format_timestamp(now.at),
    }
