"""The models that a tenant configures: their roles, secrets and addresses (R-TOOL-22).

A model holds no key, only the name of a secret that is stored for the address. Prompts go to the address, so
a changed address widens egress (orchestrator/core/tools/destinations.py lists what else does).
"""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.tools.destinations import A_SECRET
from orchestrator.core.tools.egress_policy import Target, target_of

MOST_MODELS = 20
HOUSE = "house"
"""What stands, in a line of failover, for the operator's own models in their order."""
NAME = r"^[a-z][a-z0-9-]{0,31}$"
AT: dict[str, str] = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
"""Where a provider is asked when no other address is named."""


NEARBY = (".local", ".internal", ".lan", ".home.arpa", ".localhost")
"""How names end that only one's own network knows."""


def usual_bound(base_url: str | None) -> int | None:
    """Return the default number of parallel calls of a model, or None for no bound.

    The default is one if the address is on this machine or its network, because a server there holds one set
    of weights. Elsewhere there is no bound.
    """
    if not base_url:
        return None
    host = (urlsplit(base_url).hostname or "").rstrip(".").lower()
    try:
        return None if ip_address(host).is_global else 1
    except ValueError:
        return 1 if "." not in host or host.endswith(NEARBY) else None


class OwnModel(FrozenModel):
    """One model of a tenant.

    `base_url`: empty means the provider's own address. `secret` names a secret that is stored for the origin
    of the address; without it the server is called without a key. Limits are tokens, times are milliseconds.
    `failover` holds names of other models, or `house`, in order. `at_once`: the number of parallel calls,
    more wait in line; None means one if the model is on this machine or in its network, else no bound.
    """

    name: str = Field(pattern=NAME)
    provider: Literal["openai", "anthropic"]
    model: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$")
    base_url: str = Field(default="", max_length=2_000)
    secret: str = Field(default="", pattern=rf"^$|{A_SECRET}")
    roles: tuple[Role, ...] = Field(default=(), max_length=10)
    context_tokens: int = Field(default=128_000, ge=1_000, le=10_000_000)
    max_output_tokens: int = Field(default=2_000, ge=64, le=200_000)
    timeout_ms: int = Field(default=60_000, ge=1_000, le=600_000)
    max_retries: int = Field(default=2, ge=0, le=10)
    streams: bool = False
    at_once: int | None = Field(default=None, ge=1, le=10_000)
    cheaper: str = Field(default="", max_length=32)
    failover: tuple[str, ...] = Field(default=(), max_length=10)

    @property
    def place(self) -> tuple[str, str, str]:
        """The receiver of the prompts: protocol, address and model."""
        return self.provider, self.base_url or AT[self.provider], self.model

    @property
    def target(self) -> Target:
        """The network target of the model.

        Raises: EgressRefused.
        """
        return target_of(self.base_url or AT[self.provider])

    @property
    def origin(self) -> str:
        """The origin that the model's secret is stored for.

        Raises: EgressRefused.
        """
        return self.target.origin

    def profile(self, price: ModelPrice | None, house: Sequence[ModelProfile]) -> ModelProfile:
        """Build the profile that runs are pinned to.

        `house` holds the operator's own profiles, which replace `house` in the failover list.
        """
        line = [
            name for one in self.failover for name in ([p.name for p in house] if one == HOUSE else [one])
        ]
        return ModelProfile(
            name=self.name, provider=self.provider, model=self.model, base_url=self.base_url or None,
            roles=self.roles, context_tokens=self.context_tokens, max_output_tokens=self.max_output_tokens,
            timeout_ms=self.timeout_ms, max_retries=self.max_retries, price=price,
            cheaper=self.cheaper or None, failover=tuple(dict.fromkeys(line)), streams=self.streams, own=True,
            secret=self.secret, at_once=self.at_once or usual_bound(self.base_url),
        )  # fmt: skip


class OwnModels(FrozenModel):
    """The models of a tenant, each name once."""

    profiles: tuple[OwnModel, ...] = Field(default=(), max_length=MOST_MODELS)

    def find_model(self, name: str) -> OwnModel | None:
        """Return the model of this name, or None."""
        return next((one for one in self.profiles if one.name == name), None)


def _list_usable_models(models: OwnModels) -> frozenset[str]:
    """Return the names of the models that a run may call.

    These are the models with a role, their cheaper models and their failover models, followed transitively.
    """
    found, fresh = set[str](), [one.name for one in models.profiles if one.roles]
    while fresh:
        name = fresh.pop()
        one = models.find_model(name)
        if name not in found and one is not None:
            found.add(name)
            fresh += [one.cheaper, *one.failover]
    return frozenset(found)


def put_in_force(before: OwnModels, after: OwnModels) -> Iterator[tuple[int, OwnModel]]:
    """Yield the models that become callable or change with `after`, each with its index.

    The requirements of each such model must be met first. A model that is unchanged and was callable before
    is left out, so that it blocks no change.
    """
    asked_before, asked = _list_usable_models(before), _list_usable_models(after)
    for number, one in enumerate(after.profiles):
        known = before.find_model(one.name)
        stands = known is not None and (known.place, known.secret) == (one.place, one.secret)
        if one.name in asked and not (stands and one.name in asked_before):
            yield number, one


def _house_plays(models: OwnModels) -> bool:
    """Return whether a run may call the operator's models.

    It may for roles that no tenant model plays, or as failover.
    """
    played = {role for one in models.profiles for role in one.roles}
    line = {heir for one in models.profiles for heir in one.failover}
    return HOUSE in line or not set(get_args(Role)) <= played


def faults_of(models: OwnModels) -> Iterator[tuple[str, str]]:
    """Yield the inconsistencies of the models, each as a pointer and a sentence."""
    names, played = [one.name for one in models.profiles], dict[str, str]()
    for number, one in enumerate(models.profiles):
        at = f"/profiles/{number}"
        if one.name == HOUSE:
            yield f"{at}/name", "The operator's models are called so."
        if one.name in names[:number]:
            yield f"{at}/name", "Each name stands for one model."
        if one.cheaper and (one.cheaper not in names or one.cheaper == one.name):
            yield f"{at}/cheaper", f"There is no other model {one.cheaper}."
        for place, heir in enumerate(one.failover):
            if heir != HOUSE and (heir not in names or heir == one.name):
                yield f"{at}/failover/{place}", f"There is no other model {heir}."
        for place, role in enumerate(one.roles):
            if role in played:
                yield f"{at}/roles/{place}", f"{played[role]} plays {role} already."
            played[role] = one.name
    if names and not played:
        yield "/profiles/0/roles", "Somebody has to play a role."


def wider_models(before: OwnModels, after: OwnModels) -> tuple[str, ...]:
    """Describe each new receiver of prompts and each changed secret (by name), one sentence each.

    An empty result means that egress is no wider. A changed path or model counts as a new receiver because,
    on a gateway, both identify the account.
    """
    return tuple(_describe_widenings(before, after))


def _describe_widenings(before: OwnModels, after: OwnModels) -> Iterator[str]:
    if _house_plays(after) and not _house_plays(before):
        yield "Prompts go to the operator's models again."
    known_ones, asked = _list_usable_models(before), _list_usable_models(after)
    for one in after.profiles:
        known = before.find_model(one.name)
        if known is None or known.place != one.place:
            yield f"Prompts go to {one.name}: {one.model} at {one.base_url or AT[one.provider]}."
        elif one.name in asked and one.name not in known_ones:
            yield f"Prompts go to {one.name}, which was named and asked for nothing."
        elif known.secret != one.secret:
            before_it, now = known.secret or "none", one.secret or "none"
            yield f"{one.name} is asked with another secret: {now}, no longer {before_it}."
