"""The arithmetic of one posting: settlements and reservations of a commit as net changes of lines.

Spec: R-BUDGET-2.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from budgets.core.amounts import NOTHING, ZERO, Vector
from budgets.core.dimension import GAUGES, Dimension

COST: Final = Dimension.COST_USD


class Cause(StrEnum):
    """The reason for a ledger entry."""

    OPEN = "open"
    RESERVE = "reserve"
    SETTLE = "settle"
    OVERRUN = "overrun"
    RELEASE = "release"
    EXTEND = "extend"
    TRANCHE = "tranche"
    REFILL = "refill"
    CORRECTION = "correction"


class Settle(NamedTuple):
    """Book the actual usage of an effect and release its reservation.

    `reserved` is the amount held by its Reserve. An empty `effect_id` books usage that no effect reserved
    (the working clock). `unknown` means that `actual` was not measured: it is the reservation, charged in
    full.
    """

    effect_id: str
    reserved: Mapping[str, Decimal]
    actual: Mapping[str, Decimal]
    unknown: bool = False
    price_version: str = ""


class Reserve(NamedTuple):
    """Hold the worst case of an effect before it starts.

    Gauges are compared with their limits and not held.
    """

    effect_id: str
    amounts: Mapping[str, Decimal]
    price_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The first line that cannot provide the wanted amount. `left` is never below zero.

    `account`: run, tenant_day or tenant_month.
    """

    dimension: Dimension
    limit: Decimal
    wanted: Decimal
    left: Decimal
    account: str = "run"


class LineState(NamedTuple):
    """The current state of a line; a limit of None is no limit."""

    limit: Decimal | None
    used: Decimal = ZERO
    reserved: Decimal = ZERO

    @property
    def left(self) -> Decimal | None:
        """The amount that can still be reserved, never below zero; None without a limit."""
        return None if self.limit is None else max(ZERO, self.limit - self.used - self.reserved)

    @property
    def over(self) -> bool:
        """Return whether more is in use than the limit: after an overrun, or when the limit was lowered."""
        return self.limit is not None and self.used + self.reserved > self.limit


@dataclass(slots=True)
class Change:
    """The net change of one line; `wanted` is the newly requested amount."""

    used: Decimal = ZERO
    reserved: Decimal = ZERO
    wanted: Decimal = ZERO
    gauge: bool = False

    @property
    def check(self) -> Decimal | None:
        """The amount that must fit in addition to current use; None if nothing new is requested."""
        if not self.wanted:
            return None
        return self.wanted if self.gauge else self.used + self.reserved


class Draft(NamedTuple):
    """A ledger entry to be written: deltas of the lines it names."""

    cause: Cause
    effect_id: str | None
    used: Vector = NOTHING
    reserved: Vector = NOTHING
    limit: Vector = NOTHING
    unknown: bool = False
    price_version: str = ""


@dataclass(slots=True)
class Plan:
    """A computed posting: changes by dimension, drafts in order, the overrun, and the money moved.

    `overrun` is the excess over the reservations. `money` lists (effect, reserved, actual) of the
    settlements that concern US$; `wanted` is the US$ newly requested.
    """

    changes: dict[Dimension, Change] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    overrun: Vector = NOTHING
    money: list[tuple[str, Decimal, Decimal]] = field(default_factory=list)
    wanted: Decimal = ZERO

    def at(self, dimension: Dimension) -> Change:
        """Return the change of a dimension, created if absent."""
        change = self.changes.get(dimension)
        if change is None:
            change = self.changes[dimension] = Change(gauge=dimension in GAUGES)
        return change


def plan_posting(settles: Iterable[Settle], reserves: Iterable[Reserve]) -> Plan:
    """Compute the net changes of one posting.

    Usage that no effect reserved is booked with the first settlement, if there is one, so that elapsed time
    costs no row of its own.

    Raises: DimensionUnknown, AmountInvalid.
    """
    plan = Plan()
    effects = [settle for settle in settles if settle.effect_id]
    idle = NOTHING
    for settle in settles:
        if not settle.effect_id:
            idle = idle.plus(Vector.of(settle.actual).without_gauges())
    for settle in effects:
        _plan_settlement(plan, settle, idle)
        idle = NOTHING
    if idle.nonzero():
        _plan_usage(plan, idle)
        plan.drafts.append(Draft(cause=Cause.SETTLE, effect_id=None, used=idle.nonzero()))
    for reserve in reserves:
        _plan_reservation(plan, reserve)
    return plan


def _plan_settlement(plan: Plan, settle: Settle, idle: Vector) -> None:
    reserved, actual = (
        Vector.of(settle.reserved).select_bookable(),
        Vector.of(settle.actual).select_bookable(),
    )
    excess = actual.above(reserved)
    within = actual.minus(excess).plus(idle).nonzero()
    plan.drafts.append(
        Draft(
            cause=Cause.SETTLE if within else Cause.RELEASE,
            effect_id=settle.effect_id,
            used=within,
            reserved=NOTHING.minus(reserved),
            unknown=settle.unknown,
            price_version=settle.price_version,
        )
    )
    if excess:
        plan.overrun = plan.overrun.plus(excess)
        plan.drafts.append(
            Draft(
                cause=Cause.OVERRUN,
                effect_id=settle.effect_id,
                used=excess,
                price_version=settle.price_version,
            )
        )
    _plan_usage(plan, actual)
    _plan_usage(plan, idle)
    for dimension, amount in reserved.items():
        plan.at(dimension).reserved -= amount
    held, spent = reserved.amount(COST), actual.amount(COST)
    if held or spent:
        plan.money.append((settle.effect_id, held, spent))


def _plan_reservation(plan: Plan, reserve: Reserve) -> None:
    asked = Vector.of(reserve.amounts).nonzero()
    for dimension, amount in asked.items():
        change = plan.at(dimension)
        if change.gauge:
            change.wanted = max(change.wanted, amount)
        else:
            change.wanted += amount
            change.reserved += amount
    plan.wanted += asked.amount(COST)
    plan.drafts.append(
        Draft(
            cause=Cause.RESERVE,
            effect_id=reserve.effect_id,
            reserved=asked.without_gauges(),
            price_version=reserve.price_version,
        )
    )


def _plan_usage(plan: Plan, amounts: Vector) -> None:
    for dimension, amount in amounts.items():
        plan.at(dimension).used += amount


def explain_posting_refusal(lines: Mapping[Dimension, LineState], plan: Plan) -> Refusal | None:
    """Return the first refusal of the run's lines, in order of dimensions, or None (R-BUDGET-16)."""
    for dimension in Dimension:
        change = plan.changes.get(dimension)
        if change is None or change.check is None:
            continue
        if (refused := refused_by(dimension, lines[dimension], change)) is not None:
            return refused
    return None


def refused_by(dimension: Dimension, line: LineState, change: Change) -> Refusal | None:
    """Return the refusal if the line cannot provide the amount that the change wants, else None."""
    if line.limit is None or change.check is None or line.used + line.reserved + change.check <= line.limit:
        return None
    before = line.used + line.reserved + change.check - change.wanted
    return Refusal(
        dimension=dimension, limit=line.limit, wanted=change.wanted, left=max(ZERO, line.limit - before)
    )


def apply_plan(lines: Mapping[Dimension, LineState], plan: Plan) -> dict[Dimension, LineState]:
    """Apply the plan to the lines: the model that the database is tested against."""
    after = dict(lines)
    for dimension, change in plan.changes.items():
        line = lines[dimension]
        after[dimension] = LineState(
            limit=line.limit, used=line.used + change.used, reserved=line.reserved + change.reserved
        )
    return after
