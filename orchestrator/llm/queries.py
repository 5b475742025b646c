"""The models that new runs of a tenant are pinned to, and the state of each (R-TOOL-22).

Call it inside the tenant's context.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from budgets.price_lookup import own_price
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.llm.tenant_models import AT
from orchestrator.llm.gateways.catalog import (
    MILLION,
    NO_KEY,
    ModelEnvironment,
    key_for,
    profiles_for,
    with_own,
)
from orchestrator.llm.gateways.client import subject_of
from orchestrator.outbound.queries import ORDER, CircuitSeen, circuits_now
from orchestrator.tools.queries.destinations import own_models
from tenancy.secret_store import secrets_of

Key = Literal["operator", "secret", "expired", "missing", "none"]
"""Whose key a model is asked with; `none`: its server is asked without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNow:
    """A model that new runs are pinned to, at the tenant's own price where one was set.

    `circuit` is the worst of its circuits, None where there was none yet.
    """

    profile: ModelProfile
    key: Key
    circuit: CircuitSeen | None

    @property
    def unsaid(self) -> bool:
        """True if no price is set for the operator's model at their own address.

        Its calls are charged at the declared worst case.
        """
        profile = self.profile
        declared = profile.price is not None and profile.price.source == "declared"
        return declared and not profile.own and profile.base_url is not None

    @property
    def worst(self) -> Decimal:
        """The price of a million input tokens in US$, at the dearest rate."""
        return MILLION * self.profile.price.dearest_input if self.profile.price is not None else Decimal(0)

    @property
    def place(self) -> str:
        """The address that prompts are sent to."""
        return self.profile.base_url or AT[self.profile.provider]


def profiles_now(scenario: str | None, at: datetime) -> tuple[ModelProfile, ...]:
    """Return the models of the tenant and the deployment at the prices listed for `at`.

    Without any model the scenario's profiles are returned, if there is a scenario. Models with a role come
    first. Prices that the tenant set are not applied here.
    """
    environment = ModelEnvironment.from_settings()
    return with_own(profiles_for(scenario, environment, at=at), own_models(), environment, at=at)


def models_now(tenant_id: UUID, at: datetime) -> list[ModelNow]:
    """Return every model that can be called now, those with a role first.

    The list is empty where scenarios are played.
    """
    environment, circuits = ModelEnvironment.from_settings(), circuits_now(at)
    kept = {one.name: one.expires_at is None or one.expires_at > at for one in secrets_of(tenant_id)}
    found = []
    for profile in profiles_now(None, at):
        price = own_price(tenant_id, profile.provider, profile.model, at) or profile.price
        subject = subject_of(profile)
        before = sorted(
            (one for one in circuits if one.subject == subject and one.kind != "tool"),
            key=lambda one: ORDER.index(one.state),
        )
        found.append(
            ModelNow(
                profile=profile.evolve(price=price), key=_get_key_status(environment, profile, kept),
                circuit=before[0] if before else None,
            )
        )  # fmt: skip
    return found


def _get_key_status(environment: ModelEnvironment, profile: ModelProfile, kept: dict[str, bool]) -> Key:
    if not profile.own:
        return "none" if key_for(environment, profile) == NO_KEY else "operator"
    if not profile.secret:
        return "none"
    if profile.secret not in kept:
        return "missing"
    return "secret" if kept[profile.secret] else "expired"
