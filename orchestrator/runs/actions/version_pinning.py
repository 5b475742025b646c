"""Pinning: the exact versions a run will use from start to end (R-GRAPH-12)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from budgets.core.errors import PriceUnknown
from budgets.price_lookup import own_price
from orchestrator.core.admission.errors import GoalInvalid, NoModel
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.common.name_patterns import is_listed
from orchestrator.core.domain.boundary import Boundary
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.isolation import as_granted
from orchestrator.llm.queries import profiles_now
from orchestrator.policies.queries.boundaries import newest_boundary
from orchestrator.policies.queries.policies import policy_now
from orchestrator.publishing.models import PinSet, PromptVersion, RegistryVersion, ToolVersion
from orchestrator.tools.gateways.availability import Readiness, assess_tool_readiness
from traces.core.canonical import canonical_model, compute_digest

# A boundary that states no time: a credential that ends within a day is worth a word.
UNSTATED: Final = timedelta(days=1)
SPECS: Final = 1024


class PinsWithDigest(NamedTuple):
    """Pins with the digest of their canonical form."""

    pins: Pins
    digest: str


def pin_versions(
    tenant_id: UUID, graph: CompiledGraph, boundary_slug: str | None, at: datetime
) -> PinsWithDigest:
    """Collect what is in force at `at` and keep it by digest. Joins the caller's transaction.

    Raises GoalInvalid for an unknown boundary, NoModel where no model can play, PriceUnknown where policy
    refuses a model whose price nobody knows.
    """
    row = newest_boundary(boundary_slug or graph.spec.boundary)
    if row is None:
        raise GoalInvalid(
            detail=f"there is no boundary {boundary_slug or graph.spec.boundary}", pointer="/boundary"
        )
    boundary = Boundary.model_validate_json(bytes(row.body))
    registry = RegistryVersion.objects.order_by("-version").first()
    active: dict[str, str] = dict(registry.tools) if registry is not None else {}
    tools, unpriced = _priced_tools(_load_tool_specs(active))
    profiles = _with_tenant_prices(tenant_id, profiles_now(graph.spec.scenario, at), at)
    if not profiles:
        raise NoModel(slug=graph.spec.slug)
    known = _assess_tool_readiness(graph, boundary, tools, at)
    prompts = {row.slug: row for row in PromptVersion.objects.order_by("slug", "version")}
    pins = Pins(
        boundary=boundary,
        boundary_digest=row.digest,
        tools=tuple(as_granted(tool, boundary) for tool in tools),
        tool_digests={tool.name: active[tool.name] for tool in tools},
        registry_digest=registry.digest if registry is not None else compute_digest("registry", b"{}"),
        profiles=profiles,
        prompts={slug: bytes(row.body).decode() for slug, row in prompts.items()},
        prompt_versions={slug: row.version for slug, row in prompts.items()},
        unpriced=unpriced,
        left_out=known.left_out,
        cautions=known.cautions,
        policy=policy_now().policy,
        price_book=";".join(sorted({p.price.version for p in profiles if p.price is not None}))[:100],
    )
    body = canonical_model(pins)
    found = PinsWithDigest(pins, compute_digest("pins", body))
    _store_pin_set(tenant_id, found.digest, body)
    return found


def _assess_tool_readiness(
    graph: CompiledGraph, boundary: Boundary, tools: Sequence[ToolSpec], at: datetime
) -> Readiness:
    """How the tools stand that a run of this graph may call, for as long as its boundary lets it work."""
    asked = [
        tool
        for tool in tools
        if is_listed(graph.spec.tools, tool.name) and boundary.grant_for(tool.name) is not None
    ]
    stated = boundary.budget.get("wall_clock_seconds")
    return assess_tool_readiness(
        asked, at, at + (UNSTATED if stated is None else timedelta(seconds=int(stated)))
    )


def _with_tenant_prices(
    tenant_id: UUID, profiles: tuple[ModelProfile, ...], at: datetime
) -> tuple[ModelProfile, ...]:
    """The profiles at the tenant's own prices where it declared any (R-BUDGET-15). One without a price cannot
    be asked; where one plays a role, nobody else may play it in its place. Raises PriceUnknown."""
    found = [
        profile
        if profile.provider == "scripted"
        else profile.evolve(price=own_price(tenant_id, profile.provider, profile.model, at) or profile.price)
        for profile in profiles
    ]
    for place, profile in enumerate(found):
        if profile.price is None and (place == 0 or profile.roles):
            raise PriceUnknown(provider=profile.provider, model=profile.model)
    return tuple(profile for profile in found if profile.price is not None)


def _priced_tools(tools: Sequence[ToolSpec]) -> tuple[tuple[ToolSpec, ...], tuple[str, ...]]:
    """The tools at their prices, and the names of those whose price nobody has stated: these are charged at
    the declared worst case, or left out by policy, with those that could not be read back without them
    (R-BUDGET-15)."""
    unpriced = tuple(tool.name for tool in tools if tool.price_usd is None)
    if settings.INTERLOCK_UNKNOWN_PRICE == "refuse":
        known = tuple(tool for tool in tools if not {tool.name, _reader_of(tool)} & set(unpriced))
        return known, unpriced
    worst = settings.INTERLOCK_WORST_CASE_USD_PER_CALL
    return tuple(tool.evolve(price_usd=worst) if tool.price_usd is None else tool for tool in tools), unpriced


def _reader_of(tool: ToolSpec) -> str:
    reader = None if tool.verifier is None else tool.verifier.read_back
    return "" if reader is None else reader.tool


def _load_tool_specs(active: dict[str, str]) -> list[ToolSpec]:
    rows = ToolVersion.objects.filter(digest__in=list(active.values())).order_by("slug")
    return [_parse_tool_spec(bytes(row.body)) for row in rows if active.get(row.slug) == row.digest]


# A tenant has some fifty tools, and pins them at each submission; a version never changes.
@lru_cache(maxsize=SPECS)
def _parse_tool_spec(body: bytes) -> ToolSpec:
    return ToolSpec.model_validate_json(body)


def _store_pin_set(tenant_id: UUID, pins_digest: str, body: bytes) -> None:
    if PinSet.objects.filter(digest=pins_digest).exists():
        return
    try:
        with transaction.atomic():
            PinSet.objects.create(tenant_id=tenant_id, digest=pins_digest, body=body)
    except IntegrityError:
        # Another submission kept the same pins at the same moment: that is what content addressing is for.
        return
