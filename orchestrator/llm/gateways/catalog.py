"""The models that can be called now, each with its price. Keys never leave the memory of this process.

Spec: R-TOOL-22, R-TOOL-23, R-BUDGET-15.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Literal, Self, get_args

import structlog
from django.conf import settings

from budgets.core.errors import PriceUnknown
from budgets.core.pricing import ModelPrice
from budgets.price_catalog import from_genai_prices
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.llm.tenant_models import AT, OwnModels, usual_bound

log = structlog.get_logger(__name__)
OPENAI_URL, ANTHROPIC_URL = AT["openai"], AT["anthropic"]
DEFAULT_MODELS = {"openai": "gpt-5.4-mini", "anthropic": "claude-haiku-4-5"}
# The model that takes over from one of the same provider when most of a run's cost is spent (R-BUDGET-5).
CHEAPER_MODELS = {"openai": "gpt-5.4-nano", "anthropic": "claude-haiku-4-5"}
# The model name that servers with a single model accept; servers with several need INTERLOCK_MODEL.
ANY_MODEL = "default"
ROLES: tuple[Role, ...] = get_args(Role)
SCRIPTED = "scripted"
SCRIPTED_PRICE = ModelPrice(
    provider=SCRIPTED, model=SCRIPTED, input=Decimal("0.000001"), output=Decimal("0.000004"),
    source="scripted", version="scripted-1",
)  # fmt: skip
CHEAPER_SCRIPTED = "scripted-cheaper"
CHEAPER_SCRIPTED_PRICE = ModelPrice(
    provider=SCRIPTED, model=CHEAPER_SCRIPTED, input=Decimal("0.00000025"), output=Decimal("0.000001"),
    source="scripted", version="scripted-cheaper-1",
)  # fmt: skip
MILLION = Decimal(1_000_000)
NO_KEY = "no-key"
"""What servers that want no key are sent: the libraries insist on a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEnvironment:
    """The model settings of the deployment. `repr` does not show the keys (R-SEC-8)."""

    model: str | None = None
    cheaper: str | None = None
    openai_base_url: str | None = None
    openai_api_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    anthropic_api_key: str | None = field(default=None, repr=False)
    unknown_price: str = "worst"
    worst_case_usd_per_mtok: Decimal = Decimal(20)
    streams: bool = False
    failover: bool = True
    price: str | None = None
    at_once: int | None = None

    @classmethod
    def from_settings(cls) -> Self:
        """Build the environment from this process's settings."""
        return cls(
            model=settings.INTERLOCK_MODEL, cheaper=settings.INTERLOCK_CHEAPER_MODEL,
            openai_base_url=settings.OPENAI_BASE_URL,
            openai_api_key=settings.OPENAI_API_KEY,
            anthropic_base_url=getattr(settings, "ANTHROPIC_BASE_URL", None),
            anthropic_api_key=settings.ANTHROPIC_API_KEY, unknown_price=settings.INTERLOCK_UNKNOWN_PRICE,
            worst_case_usd_per_mtok=settings.INTERLOCK_WORST_CASE_USD_PER_MTOK,
            streams=settings.INTERLOCK_MODEL_STREAMS, failover=settings.INTERLOCK_MODEL_FAILOVER,
            price=settings.INTERLOCK_MODEL_PRICE, at_once=settings.INTERLOCK_MODEL_AT_ONCE,
        )  # fmt: skip


def profiles_for(
    scenario: str | None, environment: ModelEnvironment | None = None, *, at: datetime
) -> tuple[ModelProfile, ...]:
    """Return the profiles that a new run is pinned to.

    These are the configured models at the prices listed for `at`, which is the database's time. Without
    configured models the workflow's scripted scenario is used; without a scenario the result is empty.
    """
    environment = environment or ModelEnvironment.from_settings()
    configured = available_profiles(environment, at)
    if configured:
        return configured
    return scripted_profiles(scenario) if scenario is not None else ()


def available_profiles(environment: ModelEnvironment, at: datetime) -> tuple[ModelProfile, ...]:
    """Return the models that can be called; empty without a key or base URL.

    The first model plays every role. The other models take over where the first one cannot be called.
    """
    wanted, _, named = (environment.model or "").partition(":")
    if wanted == SCRIPTED:
        return ()
    found = [
        (provider, named if provider == wanted and named else None)
        for provider in _list_reachable_providers(environment)
    ]
    found.sort(key=lambda pair: pair[0] != wanted)
    if wanted and (not found or found[0][0] != wanted):
        log.warning("models.not_available", wanted=wanted, available=[provider for provider, _ in found])
    profiles = tuple(
        _build_profile(environment, provider, model, roles=ROLES if first == 0 else (), at=at)
        for first, (provider, model) in enumerate(found)
    )
    if environment.failover and len(profiles) > 1:
        heirs = tuple(profile.name for profile in profiles[1:])
        profiles = (profiles[0].evolve(failover=heirs), *profiles[1:])
    return _with_cheaper(environment, profiles, at)


def _with_cheaper(
    environment: ModelEnvironment, profiles: tuple[ModelProfile, ...], at: datetime
) -> tuple[ModelProfile, ...]:
    """Return the profiles with the cheaper model of the first one appended.

    The cheaper model is the configured one, or else the provider's own where it costs less. For a base URL
    set by the operator only the configured one is used.
    """
    if not profiles:
        return ()
    first = profiles[0]
    _, _, named = (environment.cheaper or "").rpartition(":")
    wanted = named or (CHEAPER_MODELS.get(first.provider) if first.base_url is None else None)
    if wanted is None or wanted == first.model:
        return profiles
    cheaper = _build_profile(environment, first.provider, wanted, roles=(), at=at)  # type: ignore[arg-type]
    if not named and not _costs_less(cheaper.price, first.price):
        return profiles
    return (first.evolve(cheaper=cheaper.name), *profiles[1:], cheaper)


def _costs_less(one: ModelPrice | None, other: ModelPrice | None) -> bool:
    if one is None or other is None or "declared" in (one.source, other.source):
        return False
    return one.input < other.input and one.output < other.output


def with_own(
    house: tuple[ModelProfile, ...], own: OwnModels, environment: ModelEnvironment, *, at: datetime
) -> tuple[ModelProfile, ...]:
    """Return the models that the tenant configured, followed by those of the deployment.

    The deployment's models play the roles that the tenant's models leave open. Among the tenant's models
    those with a role come first. The deployment's scripted profiles give way to any tenant model, unless
    the deployment is configured to be scripted.
    """
    if not own.profiles or (environment.model or "").partition(":")[0] == SCRIPTED:
        return house
    real = tuple(profile for profile in house if profile.provider != SCRIPTED)
    taken = {role for one in own.profiles for role in one.roles}
    rest = tuple(
        profile.evolve(roles=tuple(role for role in profile.roles if role not in taken)) for profile in real
    )
    mine = tuple(
        one.profile(_price_in(environment, one.provider, one.model, at), real) for one in own.profiles
    )
    return tuple(sorted(mine, key=lambda profile: not profile.roles)) + rest


def _price_in(environment: ModelEnvironment, provider: str, model: str, at: datetime) -> ModelPrice | None:
    return _resolve_price(provider, model, environment.unknown_price, environment.worst_case_usd_per_mtok, at)


def scripted_profile(scenario: str) -> ModelProfile:
    """Build the profile that plays a scenario.

    Its runs are marked wherever a person sees them (R-LOOP-10).
    """
    return ModelProfile(
        name=SCRIPTED, provider="scripted", model=f"{SCRIPTED}:{scenario}", roles=ROLES, scenario=scenario,
        price=SCRIPTED_PRICE, streams=True,
    )  # fmt: skip


def scripted_profiles(scenario: str) -> tuple[ModelProfile, ...]:
    """Return a scenario's profile and a cheaper one that plays the same lines for a quarter of the price."""
    usual = scripted_profile(scenario)
    cheaper = usual.evolve(name=CHEAPER_SCRIPTED, roles=(), price=CHEAPER_SCRIPTED_PRICE)
    return usual.evolve(cheaper=CHEAPER_SCRIPTED), cheaper


def key_for(environment: ModelEnvironment, profile: ModelProfile) -> str | None:
    """Return the key for the profile's address, or None.

    A key is only sent to the address that it was configured with (P9).
    """
    if profile.provider == "anthropic":
        given, address, configured = (
            environment.anthropic_api_key,
            profile.base_url,
            environment.anthropic_base_url,
        )
    else:
        given, address, configured = environment.openai_api_key, profile.base_url, environment.openai_base_url
    if address != configured:
        return None
    # A compatible server on the operator's own machine often needs no key.
    return given or (NO_KEY if address is not None and profile.provider == "openai" else None)


def _list_reachable_providers(environment: ModelEnvironment) -> list[Literal["openai", "anthropic"]]:
    found: list[Literal["openai", "anthropic"]] = []
    if environment.openai_api_key or environment.openai_base_url:
        found.append("openai")
    if environment.anthropic_api_key:
        found.append("anthropic")
    return found


def _build_profile(
    environment: ModelEnvironment,
    provider: Literal["openai", "anthropic"],
    model: str | None,
    *,
    roles: tuple[Role, ...],
    at: datetime,
) -> ModelProfile:
    base_url = environment.openai_base_url if provider == "openai" else environment.anthropic_base_url
    name = model or (ANY_MODEL if provider == "openai" and base_url else DEFAULT_MODELS[provider])
    stated = stated_price(environment, provider, name) if base_url else None
    return ModelProfile(
        name=f"{provider}:{name}", provider=provider, model=name, base_url=base_url, roles=roles,
        price=stated or _price_in(environment, provider, name, at), streams=environment.streams,
        at_once=environment.at_once or usual_bound(base_url),
    )  # fmt: skip


def stated_price(environment: ModelEnvironment, provider: str, model: str) -> ModelPrice | None:
    """Return the price that the operator set for the model at their own address; None where none is set.

    The version is made of the figures, so another price is another version.
    """
    if environment.price is None:
        return None
    into, _, out = environment.price.partition("/")
    return ModelPrice(
        provider=provider, model=model, input=Decimal(into) / MILLION, output=Decimal(out or into) / MILLION,
        source="operator", version=f"operator {environment.price}",
    )  # fmt: skip


def _resolve_price(provider: str, model: str, policy: str, worst: Decimal, at: datetime) -> ModelPrice | None:
    """Return the listed price, else the declared worst case.

    None where models without a price are to be refused.
    """
    try:
        return _load_listed_price(provider, model, _truncate_to_day(at))
    except PriceUnknown:
        pass
    if policy == "refuse":
        return None
    rate = worst / MILLION
    return ModelPrice(
        provider=provider,
        model=model,
        input=rate,
        output=rate,
        source="declared",
        version=f"declared-worst-{worst}",
    )


def _truncate_to_day(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@lru_cache(maxsize=64)
def _load_listed_price(provider: str, model: str, day: datetime) -> ModelPrice:
    # The day is left out of the version: the same price must give the same pins tomorrow.
    return from_genai_prices(provider, model, day).evolve(valid_from=None)
