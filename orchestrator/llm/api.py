"""The API of the models that runs use (R-TOOL-22)."""

from typing import Any, get_args

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.serializers import ReasonBody
from orchestrator.core.common.model_profile import Role
from orchestrator.core.llm.tenant_models import OwnModel
from orchestrator.llm.queries import ModelNow, models_now
from orchestrator.outbound.api import STATES
from orchestrator.publishing.api.catalog import ScopedAPIView
from orchestrator.spending.api.prices import PriceField, price_field
from orchestrator.tools.actions.change_requests import ask_to_forget_model, ask_to_name_model
from orchestrator.tools.api.change_requests import ToolProposalField, proposal_field
from orchestrator.tools.api.destinations import version_field, who_asks
from orchestrator.tools.models.tool_proposal import ToolProposal
from orchestrator.tools.queries.destinations import OutsideNow, outside_now
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import expected_version, get_caller, post_once
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    URL,
    Amount,
    FormattedCharField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    path_name,
    validate_input,
)
from traces.core.canonical import format_decimal

ROLES = list(get_args(Role))
KEYS = ["operator", "secret", "expired", "missing", "none"]


class ModelRatesBody(StrictSerializer):
    """What a model costs in US$ a million tokens, from now on, for runs to come: 0 for one that is run by
    whoever names it."""

    input_usd_per_mtok = Amount(max_value=1_000_000)
    output_usd_per_mtok = Amount(max_value=1_000_000)


class ModelFields(StrictSerializer):
    """What can be said of a model. Limits are tokens, times milliseconds. An empty `base_url` is the
    provider's own address; `secret` names one kept for the origin of the address. `failover` names others of
    the tenant, or `house` for the operator's, in order. `at_once`: how many calls at once it takes.
    At a `base_url` of one's own a model that runs are to ask needs a price that is known: `price` states
    one."""

    judged_by = OwnModel

    model = StrictCharField(max_length=100)
    base_url = FormattedCharField(rf"^$|{URL}", required=False)
    secret = StrictCharField(max_length=64, required=False, allow_blank=True)
    roles = serializers.ListField(child=serializers.ChoiceField(choices=ROLES), required=False, max_length=10)
    context_tokens = StrictIntegerField(required=False, min_value=1_000, max_value=10_000_000)
    max_output_tokens = StrictIntegerField(required=False, min_value=64, max_value=200_000)
    timeout_ms = StrictIntegerField(required=False, min_value=1_000, max_value=600_000)
    max_retries = StrictIntegerField(required=False, min_value=0, max_value=10)
    streams = StrictBooleanField(required=False)
    at_once = StrictIntegerField(required=False, min_value=1, max_value=10_000)
    price = ModelRatesBody(required=False)
    cheaper = StrictCharField(max_length=32, required=False, allow_blank=True)
    failover = serializers.ListField(child=StrictCharField(max_length=32), required=False, max_length=10)
    reason = StrictCharField(max_length=500)


class ModelBody(ModelFields):
    """A model to ask, and why."""

    name = StrictCharField(max_length=32)
    provider = serializers.ChoiceField(choices=["openai", "anthropic"])


class ModelChange(ModelFields):
    """What is to be another of a model; what is not said stays."""

    model = StrictCharField(max_length=100, required=False)
    provider = serializers.ChoiceField(choices=["openai", "anthropic"], required=False)


class ModelField(serializers.Serializer[Any]):
    """A model that new runs are pinned to. `own`: the tenant named it; `key`: whose key it is asked with, and
    whether that is there; `circuit`: the one in front of it; `at_once`: how many calls at once it
    takes, null for as many as come; `price` null where nobody knows one."""

    name = serializers.CharField()
    own = serializers.BooleanField()
    provider = serializers.CharField()
    model = serializers.CharField()
    base_url = serializers.CharField(allow_blank=True)
    roles = serializers.ListField(child=serializers.ChoiceField(choices=ROLES))
    context_tokens = serializers.IntegerField()
    max_output_tokens = serializers.IntegerField()
    timeout_ms = serializers.IntegerField()
    max_retries = serializers.IntegerField()
    streams = serializers.BooleanField()
    at_once = serializers.IntegerField(allow_null=True)
    cheaper = serializers.CharField(allow_blank=True)
    failover = serializers.ListField(child=serializers.CharField())
    secret = serializers.CharField(allow_blank=True)
    key = serializers.ChoiceField(choices=KEYS)
    circuit = serializers.ChoiceField(choices=STATES)
    price = PriceField(allow_null=True)


class ModelsField(serializers.Serializer[Any]):
    """The models, those who play a role first, and the version of the tenant's own list; 0 is that it named
    none."""

    results = ModelField(many=True)
    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class ModelProfiles(ScopedAPIView):
    """The models that new runs are pinned to."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="list_model_profiles", responses=ModelsField)
    def get(self, request: Request) -> Response:
        """The tenant's own and the operator's, with the version of the tenant's list as the ETag. No key."""
        return _build_profiles_response(request)

    @extend_schema(
        operation_id="add_model_profile", request=ModelBody,
        responses={201: ModelsField, 202: ToolProposalField},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Add one, for runs admitted from now on. A new address or key waits for a second administrator,
        where there is one (202). Raises InvalidInput (400), ProposalOpen (409), Stale (412)."""
        body, who = validate_input(ModelBody, request.data), get_caller(request)
        reason, expected = body.pop("reason"), expected_version(request)
        _write_rates(body)

        def build_response() -> StoredResponse:
            found = ask_to_name_model(
                who.tenant, body["name"], body, expected=expected, who=who_asks(request), reason=reason,
                only="new",
            )  # fmt: skip
            return _build_change_response(request, found, 201)

        return post_once(request, build_response)


class OneModelProfile(ScopedAPIView):
    """One model."""

    reading = make_scope_permission(Scope.INSPECT)

    @extend_schema(operation_id="get_model_profile", responses=ModelField)
    def get(self, request: Request, model: str) -> Response:
        """How it stands. Raises NotFound."""
        house = get_caller(request).tenant
        with tenant_transaction(house):
            found = next((m for m in models_now(house, database_now()) if m.profile.name == model), None)
            version = outside_now("models").version
        if found is None:
            raise NotFound
        return Response(_serialize_profile(found), headers={"ETag": f'"{version}"'})

    @extend_schema(
        operation_id="change_model_profile", request=ModelChange,
        responses={200: ModelsField, 202: ToolProposalField},
    )  # fmt: skip
    def patch(self, request: Request, model: str) -> Response:
        """Change one of the tenant's own, for runs admitted from now on. Another address or key waits for a
        second administrator, where there is one (202). Raises NotFound, InvalidInput (400), ProposalOpen
        (409), Stale (412)."""
        body, who = validate_input(ModelChange, request.data), get_caller(request)
        reason, expected = body.pop("reason"), expected_version(request)
        _write_rates(body)
        found = ask_to_name_model(
            who.tenant, path_name(model), body, expected=expected, who=who_asks(request), reason=reason,
            only="known",
        )  # fmt: skip
        answer = _build_change_response(request, found, 200)
        tag = {} if isinstance(found, ToolProposal) else {"ETag": f'"{found.version}"'}
        return Response(answer.body, status=answer.status, headers=tag)


class RemoveModelProfile(ScopedAPIView):
    """Taking a model out."""

    @extend_schema(
        operation_id="remove_model_profile", request=ReasonBody,
        responses={200: ModelsField, 202: ToolProposalField},
    )  # fmt: skip
    def post(self, request: Request, model: str) -> Response:
        """Runs admitted from now on are not pinned to it. Raises NotFound, InvalidInput (400) where another
        one names it, Stale (412)."""
        reason, who = validate_input(ReasonBody, request.data)["reason"], get_caller(request)
        expected = expected_version(request)

        def build_response() -> StoredResponse:
            found = ask_to_forget_model(
                who.tenant, path_name(model), expected=expected, who=who_asks(request), reason=reason
            )
            return _build_change_response(request, found, 200)

        return post_once(request, build_response)


def _write_rates(body: dict[str, Any]) -> None:
    """Write the rates as text: a proposal for a second administrator is stored as JSON."""
    if "price" in body:
        body["price"] = {name: format_decimal(amount) for name, amount in body["price"].items()}


def _build_profiles_response(request: Request) -> Response:
    body = _serialize_profile_list(request)
    return Response(body, headers={"ETag": f'"{body["version"]}"'})


def _build_change_response(request: Request, found: OutsideNow | ToolProposal, status: int) -> StoredResponse:
    """Build the response to a change: the models in force, or the proposal that waits (202)."""
    if isinstance(found, ToolProposal):
        return StoredResponse(202, proposal_field(found))
    return StoredResponse(status, _serialize_profile_list(request))


def _serialize_profile_list(request: Request) -> dict[str, Any]:
    house = get_caller(request).tenant
    with tenant_transaction(house):
        said = version_field(outside_now("models"))
        said.pop("profiles", None)
        return {"results": [_serialize_profile(one) for one in models_now(house, database_now())], **said}


def _serialize_profile(one: ModelNow) -> dict[str, Any]:
    profile = one.profile
    return {
        "name": profile.name, "own": profile.own, "provider": profile.provider, "model": profile.model,
        "base_url": profile.base_url or "", "roles": list(profile.roles),
        "context_tokens": profile.context_tokens, "max_output_tokens": profile.max_output_tokens,
        "timeout_ms": profile.timeout_ms, "max_retries": profile.max_retries, "streams": profile.streams,
        "at_once": profile.at_once, "cheaper": profile.cheaper or "", "failover": list(profile.failover),
        "secret": profile.secret,
        "key": one.key, "circuit": one.circuit.state if one.circuit is not None else "closed",
        "price": None if profile.price is None else price_field(profile.price),
    }  # fmt: skip
