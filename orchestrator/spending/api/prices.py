"""The API of prices: list them, state a new version and correct a wrong one (R-BUDGET-15)."""

from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from budgets.actions import state_price
from budgets.core.pricing import ModelPrice
from orchestrator.api.serializers import format_timestamp
from orchestrator.spending.actions.price_corrections import (
    NAMED,
    Correction,
    apply_price_correction,
    preview_price_correction,
)
from orchestrator.spending.queries.mispriced_calls import WrongPrice
from orchestrator.spending.queries.prices import model_prices, stated_versions, tool_prices, unknown_policy
from orchestrator.tools.queries.tools import ToolNow
from tenancy.core.errors import InvalidInput
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, post_once
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    Amount,
    FormattedCharField,
    Id,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    validate_input,
)
from traces.core.canonical import format_decimal

MILLION: Final = Decimal(1_000_000)
MOST: Final = 1_000_000
KINDS: Final = {"contract": "tenant", "worst_case": "declared"}
PROVIDER: Final = r"^[a-z][a-z0-9_-]{0,63}$"


class PriceField(serializers.Serializer[Any]):
    """What a model costs in US$, per million tokens and per request. Amounts are null where nobody knows
    them, which is not nothing; of a cache rate that is null the input's holds."""

    provider = serializers.CharField()
    model = serializers.CharField()
    version = serializers.CharField(allow_null=True)
    origin = serializers.CharField(allow_null=True)
    input_usd_per_mtok = serializers.CharField(allow_null=True)
    output_usd_per_mtok = serializers.CharField(allow_null=True)
    cache_read_usd_per_mtok = serializers.CharField(allow_null=True)
    cache_write_usd_per_mtok = serializers.CharField(allow_null=True)
    request_usd = serializers.CharField(allow_null=True)
    valid_from = serializers.DateTimeField(allow_null=True)


class ModelPriceField(PriceField):
    """The price in force. `asked`: new runs are pinned to this model."""

    asked = serializers.BooleanField()


class StatedPriceField(PriceField):
    """A price version that the tenant stated itself, with its reason."""

    reason = serializers.CharField(allow_blank=True)


class ToolPriceField(serializers.Serializer[Any]):
    """What a call costs in US$ by the tool's newest version; null: not known."""

    tool = serializers.CharField()
    version = serializers.CharField()
    price_usd = serializers.CharField(allow_null=True)


class PricesField(serializers.Serializer[Any]):
    """Every price. `unknown`: what is done where nobody knows one; `versions`: the newest that the tenant
    stated."""

    unknown = serializers.ChoiceField(choices=["worst", "free", "refuse"])
    models = ModelPriceField(many=True)
    tools = ToolPriceField(many=True)
    versions = StatedPriceField(many=True)


class PriceBody(StrictSerializer):
    """A new version of a model's price, from now on, for runs to come."""

    provider = FormattedCharField(PROVIDER)
    model = StrictCharField(max_length=200)
    kind = serializers.ChoiceField(choices=list(KINDS), required=False, default="contract")
    input_usd_per_mtok = Amount(max_value=MOST)
    output_usd_per_mtok = Amount(max_value=MOST)
    cache_read_usd_per_mtok = Amount(max_value=MOST, required=False, allow_null=True, default=None)
    cache_write_usd_per_mtok = Amount(max_value=MOST, required=False, allow_null=True, default=None)
    request_usd = Amount(max_value=10_000, required=False, default=Decimal(0))
    reason = StrictCharField(max_length=500)


class CorrectionBody(StrictSerializer):
    """Which price was wrong: of a model by provider, name and version, or of a tool by its name and its
    price's version. `preview` changes nothing; `after` goes on after a run."""

    one_of = (("tool",), ("provider", "model"))

    provider = FormattedCharField(PROVIDER, required=False)
    model = StrictCharField(max_length=200, required=False)
    tool = StrictCharField(max_length=64, required=False)
    version = StrictCharField(max_length=120)
    preview = StrictBooleanField(required=False, default=False)
    after = Id(required=False, allow_null=True, default=None)
    reason = StrictCharField(max_length=500)


class CorrectedRunField(serializers.Serializer[Any]):
    """What changes in one run; `later_calls`: those it has yet to make are charged at the right price."""

    run = serializers.UUIDField()
    calls = serializers.IntegerField()
    delta_usd = serializers.CharField()
    later_calls = serializers.BooleanField()


class CorrectionField(serializers.Serializer[Any]):
    """What a correction changes, or changed where it was `applied`: less than zero gives back. The first runs
    by name; `beyond` is the run to go on after where there are more than one request takes on."""

    applied = serializers.BooleanField()
    price_version = serializers.CharField()
    calls = serializers.IntegerField()
    delta_usd = serializers.CharField()
    runs = CorrectedRunField(many=True)
    runs_in_all = serializers.IntegerField()
    beyond = serializers.UUIDField(allow_null=True)


class Prices(APIView):
    """The prices of the caller's tenant."""

    def get_permissions(self) -> list[BasePermission]:
        """Require READ to list prices, ADMIN to state one."""
        return [make_scope_permission(Scope.ADMIN if self.request.method == "POST" else Scope.READ)()]

    @extend_schema(operation_id="list_prices", responses=PricesField)
    def get(self, request: Request) -> Response:
        """What models and tools cost, where that is from, and what is not known."""
        who = get_caller(request).tenant
        with tenant_transaction(who):
            at = database_now()
            body = {
                "unknown": unknown_policy(),
                "models": [
                    {**_serialize_model_price(one.provider, one.model, one.price), "asked": one.asked}
                    for one in model_prices(who, at)
                ],
                "tools": [_serialize_tool_price(tool) for tool in tool_prices(who)],
                "versions": [
                    {
                        **_serialize_model_price(one.price.provider, one.price.model, one.price),
                        "reason": one.reason,
                    }
                    for one in stated_versions()
                ],
            }
        return Response(body)

    @extend_schema(operation_id="state_price", request=PriceBody, responses={201: PriceField})
    def post(self, request: Request) -> Response:
        """State a price. It holds for runs admitted from now on; calls that were charged wrongly are
        corrected by a correction."""
        who, given = get_caller(request), validate_input(PriceBody, request.data)

        def act() -> StoredResponse:
            price = state_price(
                who.tenant, build_stated_price(given), by=who.principal, reason=given["reason"]
            )
            return StoredResponse(201, _serialize_model_price(price.provider, price.model, price))

        return post_once(request, act)


class Corrections(APIView):
    """Making a wrong price good."""

    permission_classes = [make_scope_permission(Scope.ADMIN)]

    @extend_schema(operation_id="correct_price", request=CorrectionBody, responses=CorrectionField)
    def post(self, request: Request) -> Response:
        """Charge the calls of a wrong price at the one in force, by ledger corrections; or look at what that
        would change."""
        who, given = get_caller(request), validate_input(CorrectionBody, request.data)
        wrong = _parse_wrong_price(given)

        def act() -> StoredResponse:
            if given["preview"]:
                return StoredResponse(
                    200,
                    _serialize_price_correction(
                        preview_price_correction(who.tenant, wrong, after=given["after"])
                    ),
                )
            done = apply_price_correction(
                who.tenant, wrong, by=who.principal, reason=given["reason"], after=given["after"]
            )
            return StoredResponse(200, _serialize_price_correction(done))

        return post_once(request, act)


def build_stated_price(given: dict[str, Any]) -> ModelPrice:
    """Build the price that a body or a form states. Its version is assigned when it is stored."""
    reads, writes = given["cache_read_usd_per_mtok"], given["cache_write_usd_per_mtok"]
    return ModelPrice.model_validate({
        "provider": given["provider"], "model": given["model"], "source": KINDS[given["kind"]],
        "version": "", "input": given["input_usd_per_mtok"] / MILLION,
        "output": given["output_usd_per_mtok"] / MILLION,
        "cache_read": None if reads is None else reads / MILLION,
        "cache_write": None if writes is None else writes / MILLION,
        "per_request": given["request_usd"],
    })  # fmt: skip


def _parse_wrong_price(given: dict[str, Any]) -> WrongPrice:
    named = {name: given[name] for name in ("provider", "model", "tool") if given.get(name)}
    if set(named) not in ({"tool"}, {"provider", "model"}):
        detail = "Name a tool, or a model with its provider."
        raise InvalidInput(errors=[{"pointer": "/model", "code": "required", "detail": detail}])
    return WrongPrice(**named, version=given["version"])


def price_field(price: ModelPrice) -> dict[str, Any]:
    """Serialize a known price for the API."""
    return _serialize_model_price(price.provider, price.model, price)


def _serialize_model_price(provider: str, model: str, price: ModelPrice | None) -> dict[str, Any]:
    return {
        "provider": provider, "model": model,
        "version": None if price is None else price.version,
        "origin": None if price is None else price.source,
        "input_usd_per_mtok": None if price is None else _per_mtok(price.input),
        "output_usd_per_mtok": None if price is None else _per_mtok(price.output),
        "cache_read_usd_per_mtok": None if price is None else _per_mtok(price.cache_read),
        "cache_write_usd_per_mtok": None if price is None else _per_mtok(price.cache_write),
        "request_usd": None if price is None else format_decimal(price.per_request),
        "valid_from": None if price is None else format_timestamp(price.valid_from),
    }  # fmt: skip


def _per_mtok(rate: Decimal | None) -> str | None:
    return None if rate is None else format_decimal(rate * MILLION)


def _serialize_tool_price(tool: ToolNow) -> dict[str, Any]:
    price = tool.spec.price_usd
    return {
        "tool": tool.spec.name, "version": f"{tool.spec.name}@{tool.spec.version}",
        "price_usd": None if price is None else format_decimal(price),
    }  # fmt: skip


def _serialize_price_correction(found: Correction) -> dict[str, Any]:
    beyond: UUID | None = found.beyond
    return {
        "applied": found.applied, "price_version": found.right.version, "calls": found.calls,
        "delta_usd": format_decimal(found.delta), "runs_in_all": len(found.runs),
        "runs": [
            {
                "run": str(one.run), "calls": one.calls, "delta_usd": format_decimal(one.delta),
                "later_calls": one.later,
            }
            for one in found.runs[:NAMED]
        ],
        "beyond": None if beyond is None else str(beyond),
    }  # fmt: skip
