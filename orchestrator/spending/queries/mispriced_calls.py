"""Calls charged at one version of a price, and their cost at another version (R-BUDGET-15).

Call it inside the tenant's context.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import orjson
from django.db.models import QuerySet

from budgets.core.amounts import ZERO
from budgets.core.pricing import ModelPrice, actual_cost
from orchestrator.core.accounting.effect_pricing import price_of_tool
from orchestrator.core.domain.manifest import Pins
from orchestrator.publishing.models import PinSet
from orchestrator.runs.models.run import ManifestRow, RunSignal
from orchestrator.runs.queries.state_loader import pins_of
from tenancy.db.tenant_context import raw_cursor
from traces.models import Event

# The amounts booked per effect so far, corrections included, and whether the call used more than what every
# call counts for, whether sent or not. A call that was not made was not charged.
_BOOKED: Final = """
SELECT e.effect_id, i.kind, i.tool, i.profile, sum(e.cost), sum(e.tokens_in), sum(e.tokens_out),
       bool_or(e.cause = 'settle' AND (i.kind = 'call_model' OR e.used ? 'tool_calls')), bool_or(e.unknown),
       bool_or(e.price_version = %(version)s),
       bool_or(e.cause <> 'correction'
               AND e.used - ARRAY['tool_calls', 'steps', 'wall_clock_seconds'] <> '{}'::jsonb)
  FROM (SELECT n.effect_id, n.cause, n.unknown, n.price_version,
               coalesce(n.amounts::jsonb -> 'used', '{}') AS used,
               coalesce((n.amounts::jsonb #>> '{used,cost_usd}')::numeric, 0) AS cost,
               coalesce((n.amounts::jsonb #>> '{used,input_tokens}')::numeric, 0) AS tokens_in,
               coalesce((n.amounts::jsonb #>> '{used,output_tokens}')::numeric, 0) AS tokens_out
          FROM budgets_entry n
         WHERE n.tenant_id = %(tenant)s AND n.run_id = %(run)s AND n.month_id IS NULL
           AND n.effect_id IS NOT NULL AND n.cause IN ('settle', 'overrun', 'correction')) e
  JOIN LATERAL (
       SELECT o.kind, o.tool, convert_from(o.body, 'UTF8')::jsonb ->> 'profile' AS profile
         FROM orchestrator_intent o
        WHERE o.tenant_id = %(tenant)s AND o.effect = e.effect_id ORDER BY o.fence DESC LIMIT 1) i ON true
 GROUP BY e.effect_id, i.kind, i.tool, i.profile
 ORDER BY e.effect_id"""
# Runs that were corrected to this version earlier; their calls show which model or tool the price is of.
_CORRECTED_TO: Final = """
SELECT DISTINCT run_id FROM budgets_entry
 WHERE tenant_id = %(tenant)s AND run_id IS NOT NULL AND cause = 'correction'
   AND price_version = %(version)s"""
# Outcomes of calls that may not have reached their tool: those that did not are not charged. For a call
# that took money, left the deployment or changed something, its settlement shows that it did.
UNSENT: Final = frozenset(
    {"refused", "refused_by_wall", "rate_limited", "circuit_open", "unreachable", "egress_refused"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongPrice:
    """A wrong price: of a model by provider, name and version, or of a tool in one version (`tool@3`)."""

    provider: str = ""
    model: str = ""
    tool: str = ""
    version: str

    @property
    def subject(self) -> str:
        """The subject of the price: a tool, or a model with its provider."""
        return self.tool or f"{self.provider}:{self.model}"

    def profiles(self, pins: Pins) -> frozenset[str]:
        """Return the pinned profiles of that model."""
        return frozenset(
            profile.name
            for profile in pins.profiles
            if self.model and (profile.provider, profile.model) == (self.provider, self.model)
        )

    def find_mispriced(self, pins: Pins) -> frozenset[str]:
        """Return the profiles, or the tool, that the pins charge at the wrong price."""
        priced = {profile.name: profile.price for profile in pins.profiles}
        models = {n for n in self.profiles(pins) if (one := priced[n]) and one.version == self.version}
        spec = pins.by_name.get(self.tool)
        found = spec is not None and price_of_tool(pins, spec) == self.version
        return frozenset({self.tool} if found else models)

    def names(self, run_id: UUID, pins: Pins) -> frozenset[str]:
        """Return the profiles, or the tool, that a run charges at it: by its pins, or since a correction."""
        told = told_of(run_id, self).filter(payload__price_version=self.version)
        taken = told.values_list("payload__tools" if self.tool else "payload__models", flat=True)
        return self.find_mispriced(pins).union(*taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class RightPrice:
    """The correct price: that of a model, or the cost of one call of the tool in US$."""

    version: str
    model: ModelPrice | None = None
    a_call: Decimal = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class MispricedCall:
    """One call: the US$ booked for it so far, and its true cost."""

    effect: str
    booked: Decimal
    true: Decimal

    @property
    def delta(self) -> Decimal:
        """The amount to add; negative where too much was booked."""
        return self.true - self.booked


def told_of(run_id: UUID, wrong: WrongPrice) -> QuerySet[RunSignal]:
    """Return the signals that corrected the price of that model or tool for a run."""
    return RunSignal.objects.filter(run_id=run_id, kind="repriced", payload__subject=wrong.subject)


def runs_charged_at(tenant_id: UUID, wrong: WrongPrice) -> Sequence[UUID]:
    """Return the runs admitted under that price, or corrected to it since, ordered by id."""
    held = [
        row.digest
        for row in PinSet.objects.order_by("id").iterator(chunk_size=20)
        if _is_pinned_to_wrong_price(row, wrong)
    ]
    pinned = ManifestRow.objects.filter(pins_digest__in=held).values_list("id", flat=True)
    told = RunSignal.objects.filter(
        kind="repriced", payload__subject=wrong.subject, payload__price_version=wrong.version
    )
    cursor = raw_cursor()
    cursor.execute(_CORRECTED_TO, {"tenant": tenant_id, "version": wrong.version})
    corrected = {row[0] for row in cursor.fetchall()}
    return sorted({*pinned, *told.values_list("run_id", flat=True), *corrected})


def _is_pinned_to_wrong_price(row: PinSet, wrong: WrongPrice) -> bool:
    return bool(wrong.find_mispriced(Pins.model_validate_json(bytes(row.body))))


def list_mispriced_calls(
    tenant_id: UUID, run_id: UUID, wrong: WrongPrice, right: RightPrice
) -> list[MispricedCall]:
    """Return the settled calls of a run that were charged at the wrong price and are not corrected yet."""
    return [call for call in _list_settled_calls(tenant_id, run_id, wrong, right) if call.delta]


def _list_settled_calls(
    tenant_id: UUID, run_id: UUID, wrong: WrongPrice, right: RightPrice
) -> Iterator[MispricedCall]:
    pinned = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run_id)
    pins = pins_of(tenant_id, pinned)
    names, ours = wrong.names(run_id, pins), frozenset({wrong.tool} if wrong.tool else wrong.profiles(pins))
    cursor = raw_cursor()
    cursor.execute(_BOOKED, {"tenant": tenant_id, "run": run_id, "version": wrong.version})
    rows = cursor.fetchall()
    said = _load_event_bodies(run_id, "call_observed" if wrong.tool else "model_replied")
    for effect, kind, tool, profile, cost, tokens_in, tokens_out, settled, unknown, at_it, took in rows:
        name = profile if kind == "call_model" else tool
        if not settled or name not in ours or not (at_it or name in names):
            continue
        body = said.get(effect)
        if kind == "call_model" and wrong.model:
            usage = {"input_tokens": tokens_in, "output_tokens": tokens_out}
            if body is not None and not unknown:
                usage = {name: Decimal(amount) for name, amount in body["usage"].items()}
            true = actual_cost(right.model, usage) if tokens_in or tokens_out else cost
            yield MispricedCall(effect=effect, booked=cost, true=true)
        elif kind == "call_tool" and wrong.tool:
            sent = took or body is None or body["status"] not in UNSENT
            yield MispricedCall(effect=effect, booked=cost, true=right.a_call if sent else cost)


def _load_event_bodies(run_id: UUID, kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the bodies of the run's events of one kind by effect, the newest of each."""
    bodies = Event.objects.filter(run_id=run_id, kind=kind).order_by("seq").values_list("body", flat=True)
    read = (orjson.loads(bytes(body)) for body in bodies)
    return {said["effect"]: said for said in read}
