"""Set the models that a tenant's runs use, as versions with a reason each (R-TOOL-22)."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from budgets.actions import declare_price
from budgets.core.errors import PriceUnknown
from budgets.core.pricing import ModelPrice
from budgets.price_catalog import from_genai_prices
from budgets.price_lookup import own_price
from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.llm.tenant_models import OwnModel, OwnModels, faults_of, put_in_force, wider_models
from orchestrator.tools.actions.destinations import hold_outside, keep_outside, read_outside
from orchestrator.tools.gateways.egress.guarded_transport import look_before_saving
from orchestrator.tools.queries.destinations import OutsideNow, own_models
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import InvalidInput, SecretUnusable
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from tenancy.people.dual_control import ask_second
from tenancy.secret_store import reveal_secret, secrets_of

MODELS = "the models to ask"
"""What a proposal calls the list; no tool is called so."""
PRICE = "price"
"""What a model costs, beside it: it is no part of the list, but a version of the tenant's prices."""
MILLION = Decimal(1_000_000)
Prices = Mapping[tuple[str, str], ModelPrice]


class StatedRates(BaseModel):
    """Rates in US$ per million tokens."""

    model_config = ConfigDict(extra="forbid")
    input_usd_per_mtok: Decimal = Field(ge=0, le=1_000_000, decimal_places=9)
    output_usd_per_mtok: Decimal = Field(ge=0, le=1_000_000, decimal_places=9)


def set_models(
    tenant_id: UUID,
    given: tuple[Mapping[str, Any], ...],
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """Replace the tenant's own models; runs admitted from now on are pinned to these.

    Outermost verb: owns the transaction. `expected` is the version that the caller looked at. `agreed` is the
    person who agreed to addresses and keys that were not there before.

    Raises: InvalidInput naming each bad field, Stale, SecondPersonNeeded.
    """
    wanted, prices = read_models(given), read_prices(given)
    look_at_models(tenant_id, wanted, prices)
    return set_looked_at(tenant_id, wanted, prices, expected=expected, by=by, reason=reason, agreed=agreed)


def set_looked_at(
    tenant_id: UUID,
    wanted: OwnModels,
    prices: Prices,
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> OutsideNow:
    """Set models that were already read and checked, without network access.

    The prices that come with the models apply from now on, as new versions. Opens or joins the transaction.

    Raises: as `set_models`.
    """
    with tenant_transaction(tenant_id):
        tag = hold_outside(tenant_id, "models", expected)
        more = wider_models(own_models(), wanted)
        ask_second(tenant_id, MODELS, more, by=by, agreed=agreed, reason=reason, tag=tag)
        _state_prices(tenant_id, prices, by=by, reason=reason)
        return keep_outside(tenant_id, "models", wanted, by=by, reason=reason, agreed=agreed)


def read_models(given: tuple[Mapping[str, Any], ...]) -> OwnModels:
    """Validate the list: each field, and how the fields fit together.

    Raises: InvalidInput.
    """
    bare = [{name: value for name, value in one.items() if name != PRICE} for one in given]
    wanted = read_outside(OwnModels, {"profiles": bare})
    if found := list(faults_of(wanted)):
        raise _build_input_error(found)
    return wanted


def read_prices(given: tuple[Mapping[str, Any], ...]) -> Prices:
    """Return the prices that the list states, for the models that have one.

    Raises: InvalidInput.
    """
    found = {}
    for number, one in enumerate(given):
        if one.get(PRICE) is None:
            continue
        try:
            rates = StatedRates.model_validate(one[PRICE])
        except ValidationError:
            detail = "US$ a million tokens, in and out, from 0 to 1,000,000."
            raise _build_input_error([(f"/profiles/{number}/{PRICE}", detail)]) from None
        named = (str(one["provider"]), str(one["model"]))
        found[named] = ModelPrice(
            provider=named[0], model=named[1], input=rates.input_usd_per_mtok / MILLION,
            output=rates.output_usd_per_mtok / MILLION, source="tenant", version="",
        )  # fmt: skip
    return found


def look_at_models(tenant_id: UUID, wanted: OwnModels, prices: Prices) -> None:
    """Check each new or changed address and its secret.

    An address must be reachable under the egress rules and its secret must open for it. An unchanged entry is
    not checked, so that it never prevents its removal. A model that runs are to use from now on needs its
    key, and at an address of the tenant's own a known price. Resolves host names over the network unless they
    are the provider's own.

    Raises: InvalidInput.
    """
    with tenant_transaction(tenant_id):
        standing = own_models()
        faults = [
            (f"/profiles/{number}/{field}", fault)
            for number, one in put_in_force(standing, wanted)
            for field, fault in _find_missing_settings(tenant_id, one, prices)
        ]
    for number, one in enumerate(wanted.profiles):
        known = standing.find_model(one.name)
        if known is not None and (known.place, known.secret) == (one.place, one.secret):
            continue
        if fault := _address_fault(tenant_id, one):
            faults.append((f"/profiles/{number}/base_url", fault))
        elif one.secret and (fault := _secret_fault(tenant_id, one)):
            faults.append((f"/profiles/{number}/secret", fault))
    if faults:
        raise _build_input_error(faults)


def _find_missing_settings(tenant_id: UUID, one: OwnModel, prices: Prices) -> Iterator[tuple[str, str]]:
    """Yield the missing settings that would keep every run from using a model.

    Call in the tenant's context.
    """
    if not one.base_url:
        if not one.secret:
            detail = f"{one.origin} wants a key: keep one as a secret for it and name that here."
            yield "secret", detail
        return
    named = (one.provider, one.model)
    if named in prices or own_price(tenant_id, *named, database_now()) is not None:
        return
    try:
        from_genai_prices(*named, database_now())
    except PriceUnknown:
        detail = (
            f"Nobody knows what {one.model} costs there, and an unknown price is not nothing. Say it here: "
            "a model that you run yourself costs $0."
        )
        yield PRICE, detail


def _state_prices(tenant_id: UUID, prices: Prices, *, by: UUID | None, reason: str) -> None:
    """Store the changed prices as dated versions. Joins the transaction."""
    take_advisory_lock(f"prices:{tenant_id}")
    at = database_now()
    for (provider, model), price in prices.items():
        before = own_price(tenant_id, provider, model, at)
        if before is None or before.evolve(version="", valid_from=None) != price:
            declare_price(tenant_id, price, by=by, reason=reason, at=at)


def _address_fault(tenant_id: UUID, one: OwnModel) -> str:
    """Return why the address may not be used, "" if it may."""
    try:
        target = one.target
        if not one.base_url:
            return ""
        here = target.literal
        if one.secret and target.scheme == "http" and not (here is not None and here.is_loopback):
            return "A key is not sent in the clear."
        with tenant_transaction(tenant_id):
            leave = leave_for(target.origin)
        look_before_saving(one.base_url, leave)
    except EgressRefused as refused:
        return str(refused.data["detail"])
    return ""


def _secret_fault(tenant_id: UUID, one: OwnModel) -> str:
    """Return why the secret does not open for the address, "" if it does. The secret's value is discarded."""
    try:
        reveal_secret(tenant_id, one.secret, one.origin)
    except SecretUnusable as refused:
        return f"{one.secret}: {refused.data['detail']}."
    if any(kept.name == one.secret and kept.renews_at for kept in secrets_of(tenant_id)):
        return f"{one.secret} is renewed by a token endpoint, which is done for tools alone."
    return ""


def _build_input_error(found: list[tuple[str, str]]) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": p, "code": "not-allowed", "detail": d} for p, d in found])
