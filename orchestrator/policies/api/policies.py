"""The API of the policy by origin: read it, change it and settle a proposal (R-TOOL-17)."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import format_timestamp
from orchestrator.core.policy.detectors import PLACES, SEVERITIES, discover_detectors
from orchestrator.core.policy.rules import MOST_RULES, Policy, Rule, WeakerCase
from orchestrator.policies.actions.policy_versions import (
    ChangeAuthor,
    agree_to_policy,
    asked_policy,
    change_policy,
    drop_proposal,
)
from orchestrator.policies.queries.policies import (
    PolicyNow,
    ProposedPolicy,
    find_open_proposal,
    policy_now,
    policy_versions,
)
from orchestrator.publishing.api.catalog import ScopedAPIView
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller, post_once, uuid_or_none
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.serializer_fields import (
    PydanticField,
    StrictCharField,
    StrictSerializer,
    page_of,
    validate_input,
)

DECISIONS = ("allow", "gate", "deny")


class RulesField(serializers.Serializer[Any]):
    """Rules in the order in which they are asked, and what is done with a mutating tool that is asked for
    first after something untrusted was read (docs/tools.md)."""

    rules = serializers.ListField(child=serializers.DictField(child=serializers.JSONField(allow_null=True)))
    after_untrusted = serializers.ChoiceField(choices=DECISIONS)
    safety = serializers.DictField(child=serializers.ChoiceField(choices=SEVERITIES))


class ProposalField(RulesField):
    """A weaker policy that waits for a second person. `weaker` are kinds of cases in which it is weaker, an
    example each."""

    id = serializers.UUIDField()
    before = serializers.IntegerField()
    reason = serializers.CharField()
    by = serializers.UUIDField()
    at = serializers.DateTimeField()
    weaker = serializers.ListField(child=serializers.DictField(child=serializers.JSONField(allow_null=True)))


class PolicyField(RulesField):
    """The policy in force; version 0 is what ships."""

    version = serializers.IntegerField()
    digest = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    by = serializers.UUIDField(allow_null=True)
    agreed_by = serializers.UUIDField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    proposal = ProposalField(allow_null=True)


@extend_schema_field(
    {
        "type": "object",
        "propertyNames": {"enum": [f"{place}:{name}" for place in PLACES for name in discover_detectors()]},
        "additionalProperties": {"type": "string", "enum": list(SEVERITIES)},
    }
)
class SafetyField(serializers.DictField):
    """The severity of a detector's finding, by place and detector."""


class PolicyBody(StrictSerializer):
    """The whole policy as it is to be, and why. Without `safety` the detectors mean what they mean now."""

    rules = serializers.ListField(child=PydanticField(Rule), max_length=MOST_RULES)
    after_untrusted = serializers.ChoiceField(choices=DECISIONS, required=False, default="gate")
    safety = SafetyField(
        child=serializers.ChoiceField(choices=SEVERITIES), required=False, allow_null=True, default=None
    )
    reason = StrictCharField(max_length=500)


class WordBody(StrictSerializer):
    """Why."""

    reason = StrictCharField(max_length=500)


class PolicyDoor(ScopedAPIView):
    """The policy by origin."""

    @extend_schema(operation_id="get_policy", responses=PolicyField)
    def get(self, request: Request) -> Response:
        """The policy in force, with its version as the ETag, and what waits for a second person."""
        return _build_policy_response(get_caller(request).tenant)

    @extend_schema(
        operation_id="set_policy", request=PolicyBody, responses={200: PolicyField, 202: PolicyField}
    )
    def put(self, request: Request) -> Response:
        """Make this the policy. What is nowhere weaker holds at once, for runs under way from their next call
        on; anything else waits for a second person (202). With If-Match only the version that was looked at.
        Raises InvalidInput (400), Stale (412), ProposalOpen (409)."""
        body, expected = validate_input(PolicyBody, request.data), expected_version(request)
        reason = body.pop("reason")
        if body["safety"] is None:
            with tenant_transaction(get_caller(request).tenant):
                body["safety"] = dict(policy_now().policy.safety)
        done = change_policy(
            get_caller(request).tenant,
            asked_policy(body),
            expected=expected,
            who=_build_requester(request),
            reason=reason,
        )
        return _build_policy_response(
            get_caller(request).tenant, status=200 if done.proposal is None else 202
        )


class PolicyVersions(ScopedAPIView):
    """The versions of the policy."""

    @extend_schema(operation_id="list_policy_versions", responses=page_of(PolicyField, "PolicyPage"))
    def get(self, request: Request) -> Response:
        """The newest fifty, newest first, in one page."""
        with tenant_transaction(get_caller(request).tenant):
            rows = [
                _serialize_policy_version(PolicyNow(policy=policy, row=row), None)
                for row, policy in policy_versions()
            ]
        return Response({"results": rows, "next": None, "previous": None})


class AgreeToPolicy(ScopedAPIView):
    """Agreeing to a weaker policy."""

    @extend_schema(operation_id="agree_to_policy", request=WordBody, responses=PolicyField)
    def post(self, request: Request, proposal_id: str) -> Response:
        """A second person's yes: it holds for new runs. Raises NotFound, OwnProposal (403), Stale (412)."""
        reason, who = validate_input(WordBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            agree_to_policy(
                who.tenant, _parse_proposal_id(proposal_id), who=_build_requester(request), reason=reason
            )
            return StoredResponse(200, _serialize_current_policy(who.tenant))

        return post_once(request, build_response)


class DropPolicy(ScopedAPIView):
    """Refusing a weaker policy, or taking one's own back."""

    @extend_schema(operation_id="drop_policy_proposal", request=WordBody, responses=PolicyField)
    def post(self, request: Request, proposal_id: str) -> Response:
        """It waits no longer. Raises NotFound."""
        reason, who = validate_input(WordBody, request.data)["reason"], get_caller(request)

        def build_response() -> StoredResponse:
            drop_proposal(
                who.tenant, _parse_proposal_id(proposal_id), who=_build_requester(request), reason=reason
            )
            return StoredResponse(200, _serialize_current_policy(who.tenant))

        return post_once(request, build_response)


def _build_requester(request: Request) -> ChangeAuthor:
    found = get_caller(request)
    return ChangeAuthor(principal=found.principal, owner=found.owner)


def _parse_proposal_id(text: str) -> UUID:
    found = uuid_or_none(text)
    if found is None:
        raise NotFound
    return found


def _build_policy_response(tenant_id: UUID, *, status: int = 200) -> Response:
    body = _serialize_current_policy(tenant_id)
    return Response(body, status=status, headers={"ETag": f'"{body["version"]}"'})


def _serialize_current_policy(tenant_id: UUID) -> dict[str, Any]:
    with tenant_transaction(tenant_id):
        return _serialize_policy_version(policy_now(), find_open_proposal())


def _serialize_policy_version(now: PolicyNow, waiting: ProposedPolicy | None) -> dict[str, Any]:
    row = now.row
    return {
        **_serialize_policy_rules(now.policy), "version": now.version, "digest": now.policy.digest,
        "reason": row.reason if row else "", "by": str(row.by) if row and row.by else None,
        "agreed_by": str(row.agreed_by) if row and row.agreed_by else None,
        "at": format_timestamp(row.at) if row else None,
        "proposal": _serialize_proposal(waiting) if waiting is not None else None,
    }  # fmt: skip


def _serialize_proposal(waiting: ProposedPolicy) -> dict[str, Any]:
    row = waiting.row
    return {
        **_serialize_policy_rules(waiting.policy),
        "id": str(row.id),
        "before": row.before,
        "reason": row.reason,
        "by": str(row.by),
        "at": format_timestamp(row.at),
        "weaker": [_serialize_weaker_case(case) for case in waiting.weaker[:50]],
    }


def _serialize_weaker_case(case: WeakerCase) -> dict[str, Any]:
    return {**case.leaf._asdict(), "before": case.before, "after": case.after}


def _serialize_policy_rules(policy: Policy) -> dict[str, Any]:
    said = policy.model_dump(mode="json")
    return {name: said[name] for name in ("rules", "after_untrusted", "safety")}
