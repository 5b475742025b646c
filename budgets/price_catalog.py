"""Prices from the bundled table of genai-prices; nothing is fetched (R-BUDGET-15)."""

from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from itertools import chain
from typing import Final

from genai_prices import Usage, calc_price
from genai_prices.types import ModelPrice as Listed
from genai_prices.types import TieredPrices

from budgets.core.errors import PriceUnknown
from budgets.core.pricing import LongRate, ModelPrice

_MILLION: Final = Decimal(1_000_000)
_THOUSAND: Final = Decimal(1_000)
_WRITES: Final = ("cache_write_mtok", "cache_write_5m_mtok", "cache_write_1h_mtok")
Listing = Decimal | TieredPrices | None  # what the table says of one unit, per million


def from_genai_prices(provider: str, model: str, at: datetime) -> ModelPrice:
    """The listed price of a model at `at`. Raises PriceUnknown: an unlisted model is unknown, never free.

    Cache writes are taken at the dearest listed rate, because the provider does not say which one it applied.
    """
    try:
        found = calc_price(Usage(), model, provider_id=provider, genai_request_timestamp=at)
    except LookupError as error:
        raise PriceUnknown(provider=provider, model=model[:200]) from error
    listed = found.model_price
    if _extract_rate(listed, "input_mtok", 0) is None or _extract_rate(listed, "output_mtok", 0) is None:
        raise PriceUnknown(provider=provider, model=model[:200])
    long = tuple(
        LongRate(above=start, **_build_rates(listed, start + 1)) for start in _collect_thresholds(listed)
    )
    return ModelPrice(
        provider=provider,
        model=model,
        long=long,
        per_request=_per_request(listed),
        source="genai-prices",
        version=f"genai-prices {version('genai-prices')}",
        valid_from=at,
        **_build_rates(listed, 0),
    )


def _build_rates(listed: Listed, tokens_in: int) -> dict[str, Decimal]:
    writes = [rate for name in _WRITES if (rate := _extract_rate(listed, name, tokens_in)) is not None]
    rates = {
        "input": _extract_rate(listed, "input_mtok", tokens_in),
        "output": _extract_rate(listed, "output_mtok", tokens_in),
        "cache_read": _extract_rate(listed, "cache_read_mtok", tokens_in),
        "cache_write": max(writes, default=None),
    }
    return {name: rate for name, rate in rates.items() if rate is not None}


def _extract_rate(listed: Listed, name: str, tokens_in: int) -> Decimal | None:
    price: Listing = getattr(listed, name, None)
    if price is None:
        return None
    if isinstance(price, TieredPrices):
        passed = [tier.price for tier in price.tiers if tokens_in > tier.start]
        return (passed[-1] if passed else price.base) / _MILLION
    return price / _MILLION


def _collect_thresholds(listed: Listed) -> list[int]:
    names = ("input_mtok", "output_mtok", "cache_read_mtok", *_WRITES)
    prices: list[Listing] = [getattr(listed, name, None) for name in names]
    tiers = chain.from_iterable(price.tiers for price in prices if isinstance(price, TieredPrices))
    return sorted({tier.start for tier in tiers})


def _per_request(listed: Listed) -> Decimal:
    price: Listing = getattr(listed, "requests_kcount", None)
    if price is None:
        return Decimal(0)
    return (price.base if isinstance(price, TieredPrices) else price) / _THOUSAND
