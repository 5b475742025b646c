"""A run's share of its tenant's ceilings, held ahead so that shared lines are rarely locked.

A tranche (docs/ring.md) is an amount of US$ that counts as reserved on one tenant day and one tenant month.
The run draws on it alone. When the tranche runs short, the tenant's lines are locked and the tranche is
*squared*: the spent amount moves from reserved to used on the tenant's lines, and the rest is held again. A
tranche of a past day is squared at every settlement and closed with its last one, so that a call across
midnight settles where it was reserved.

Spec: R-BUDGET-9.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple
from uuid import UUID

from budgets.core.amounts import ZERO
from budgets.core.posting import COST, Cause, LineState, Plan, Refusal

DEFAULT_CHUNK: Final = Decimal(
    "0.25"
)  # US$; some eight calls of a mid-priced model, so one commit in eight refills
PART_OF_LIMIT: Final = 8
Name = Literal["", "tenant_day", "tenant_month"]


class Tranche(NamedTuple):
    """The amounts that a run holds on one tenant day and month, in US$.

    `held` always covers `used` and `reserved`. `day` and `month` are account ids; the day runs from
    `starts_at` up to `ends_at`.
    """

    id: UUID
    day: UUID
    month: UUID
    starts_at: datetime
    ends_at: datetime
    held: Decimal = ZERO
    used: Decimal = ZERO
    reserved: Decimal = ZERO

    def covers(self, at: datetime) -> bool:
        """Return whether `at` falls into the tranche's day."""
        return self.starts_at <= at < self.ends_at


class Windows(NamedTuple):
    """The tenant's current accounts and the amounts left on them (None: no ceiling).

    They are valid up to `ends_at`, the earlier of their two ends. `over`: more is in use than the ceiling,
    because a ceiling was lowered or a provider overran; then no run draws on a tranche granted before
    without a new check.
    """

    day: UUID
    month: UUID
    starts_at: datetime
    ends_at: datetime
    day_left: Decimal | None = None
    month_left: Decimal | None = None
    day_limit: Decimal | None = None
    month_limit: Decimal | None = None
    over: bool = False

    @property
    def scarcer(self) -> tuple[Name, Decimal | None]:
        """The window with less left, and its ceiling; ("", None) if neither has a ceiling."""
        day, month = self.day_left, self.month_left
        if day is None and month is None:
            return "", None
        if month is None or (day is not None and day <= month):
            return "tenant_day", self.day_limit
        return "tenant_month", self.month_limit


@dataclass(slots=True)
class TrancheChanges:
    """The effect of a plan on the run's tranches: (reserved, used) by tranche.

    The key None denotes a tranche that is yet to be opened.
    """

    by_tranche: dict[UUID | None, tuple[Decimal, Decimal]] = field(default_factory=dict)
    wanted: Decimal = ZERO

    def draw(self, tranche: UUID | None, reserved: Decimal, used: Decimal) -> None:
        """Add amounts to the draw on a tranche."""
        before = self.by_tranche.get(tranche, (ZERO, ZERO))
        self.by_tranche[tranche] = (before[0] + reserved, before[1] + used)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrancheReconciliation:
    """One tranche reconciled with its tenant's lines.

    `booked` is the amount booked as used on the lines, `held` the amount then held there. `drawn` is the
    (reserved, used) of the plan on the tranche. `closes` when nothing is left to hold.
    """

    tranche: Tranche
    opens: bool
    closes: bool
    drawn: tuple[Decimal, Decimal]
    booked: Decimal
    held: Decimal

    @property
    def held_more(self) -> Decimal:
        """The change of the amount reserved on the tenant's lines."""
        return self.held - self.tranche.held

    @property
    def idle(self) -> bool:
        """Return whether the squaring changes nothing."""
        return not (self.opens or self.closes or self.booked or self.held_more or any(self.drawn))

    @property
    def cause(self) -> Cause:
        """The cause of the squaring's ledger entry."""
        if self.opens:
            return Cause.TRANCHE
        if self.held + self.booked > self.tranche.held:
            return Cause.REFILL
        return Cause.SETTLE if self.booked else Cause.RELEASE


def choose_current_tranche(tranches: Iterable[Tranche], at: datetime) -> Tranche | None:
    """Return the tranche that new reservations draw on."""
    return next((tranche for tranche in tranches if tranche.covers(at)), None)


def assign_amounts_to_tranches(
    plan: Plan, tranches: Iterable[Tranche], at: datetime, origins: Mapping[str, UUID | None]
) -> TrancheChanges:
    """Assign the amounts of a plan to tranches.

    `origins` names the tranche on which an effect's reservation was drawn; other effects draw on the
    current one.
    """
    now = choose_current_tranche(tranches, at)
    home = now.id if now else None
    drawn = TrancheChanges(wanted=plan.wanted)
    for effect, held, spent in plan.money:
        origin = origins.get(effect) if held else home
        drawn.draw(origin or home, -held, spent)
    if plan.wanted:
        drawn.draw(home, plan.wanted, ZERO)
    return drawn


def in_flight(tranches: Iterable[Tranche]) -> list[Tranche]:
    """List the tranches with reservations: if there is one, every reservation in flight is drawn on it."""
    return [tranche for tranche in tranches if tranche.reserved]


def is_covered_by_tranche(
    drawn: TrancheChanges, tranches: Iterable[Tranche], at: datetime, *, over: bool = False
) -> bool:
    """Return whether the current tranche covers the whole drawing, so that no tenant line is needed."""
    now = choose_current_tranche(tranches, at)
    if over and drawn.wanted:
        return False
    for tranche, (reserved, used) in drawn.by_tranche.items():
        if now is None or tranche != now.id:
            return False
        if now.used + used + now.reserved + reserved > now.held:
            return False
    return True


def chunk_for(run_limit: Decimal | None, setting: Decimal | None) -> Decimal:
    """Return the amount that a run requests at once.

    That is the tenant's setting, else an eighth of the run's limit, at least the default.
    """
    if setting is not None:
        return setting
    return DEFAULT_CHUNK if run_limit is None else max(DEFAULT_CHUNK, run_limit / PART_OF_LIMIT)


def rebalance_tranches(
    drawn: TrancheChanges,
    tranches: Iterable[Tranche],
    lines: Mapping[UUID, LineState],
    *,
    opened: Tranche,
    at: datetime,
    chunk: Decimal,
    run_left: Decimal | None,
    rest: bool = False,
) -> tuple[list[TrancheReconciliation], Refusal | None]:
    """Reconcile every tranche with the tenant's lines, or return the refusal of one of these lines.

    `lines` are the locked US$ lines of all accounts named; `opened` is the empty tranche to open when the
    current day has none; `run_left` is the amount that the run itself may still reserve after this plan
    (None: no limit). Near the ceiling a run gets the rest of the line; if that is less than the run needs,
    it is refused. `rest`: nothing is kept beyond the reservations, since others may need it meanwhile.
    """
    standing = dict(lines)
    done: list[TrancheReconciliation] = []
    now = choose_current_tranche(tranches, at)
    for old in tranches:
        if now is None or old.id != now.id:
            bears = drawn.by_tranche.get(old.id, (ZERO, ZERO))
            squaring = _build_rebalance(old, bears, old.reserved + bears[0], opens=False, closing=True)
            _apply_to_lines(standing, squaring)
            done.extend([] if squaring.idle else [squaring])
    home = now or opened
    bears = drawn.by_tranche.get(home.id if now else None, (ZERO, ZERO))
    if now is None and bears == (ZERO, ZERO):
        return done, None
    needed = home.reserved + bears[0]
    room = _compute_tranche_room(standing, home, booked=home.used + bears[1])
    if drawn.wanted:
        if (refused := _explain_room_refusal(standing, home, room, needed, drawn.wanted)) is not None:
            return [], refused
        spare = max(ZERO, chunk - drawn.wanted)
        spare = spare if run_left is None else min(spare, max(ZERO, run_left))
    else:
        spare = ZERO if rest else max(ZERO, home.held - home.used - bears[1] - needed)
    fits = min((left for left in room.values() if left is not None), default=None)
    held = needed + spare if fits is None else max(needed, min(needed + spare, fits))
    squaring = _build_rebalance(home, bears, held, opens=now is None, closing=False)
    done.extend([] if squaring.idle else [squaring])
    return done, None


def has_spare(tranches: Iterable[Tranche]) -> bool:
    """Return whether more is held on the tenant's lines than effects in flight may take."""
    return any(tranche.held > tranche.reserved for tranche in tranches)


def close_tranches(tranches: Iterable[Tranche]) -> list[TrancheReconciliation]:
    """Build the squarings that end a run's tranches: spending is booked, the rest is released."""
    return [_build_rebalance(tranche, (ZERO, ZERO), ZERO, opens=False, closing=True) for tranche in tranches]


def _build_rebalance(
    tranche: Tranche, bears: tuple[Decimal, Decimal], held: Decimal, *, opens: bool, closing: bool
) -> TrancheReconciliation:
    return TrancheReconciliation(
        tranche=tranche,
        opens=opens,
        closes=closing and not held,
        drawn=bears,
        booked=tranche.used + bears[1],
        held=held,
    )


def _apply_to_lines(standing: dict[UUID, LineState], squaring: TrancheReconciliation) -> None:
    for account in (squaring.tranche.day, squaring.tranche.month):
        line = standing[account]
        standing[account] = line._replace(
            used=line.used + squaring.booked, reserved=line.reserved + squaring.held_more
        )


def _compute_tranche_room(
    lines: Mapping[UUID, LineState], tranche: Tranche, *, booked: Decimal
) -> dict[str, Decimal | None]:
    """Compute the amount the tranche could hold on each of its two lines once `booked` is used there."""
    room: dict[str, Decimal | None] = {}
    for account, line in (("tenant_day", lines[tranche.day]), ("tenant_month", lines[tranche.month])):
        others = line.used + booked + line.reserved - tranche.held
        room[account] = None if line.limit is None else line.limit - others
    return room


def _explain_room_refusal(
    lines: Mapping[UUID, LineState],
    tranche: Tranche,
    room: Mapping[str, Decimal | None],
    needed: Decimal,
    wanted: Decimal,
) -> Refusal | None:
    for account, line in (("tenant_day", lines[tranche.day]), ("tenant_month", lines[tranche.month])):
        left = room[account]
        if left is not None and line.limit is not None and left < needed:
            spare = max(ZERO, left - needed + wanted)
            return Refusal(dimension=COST, limit=line.limit, wanted=wanted, left=spare, account=account)
    return None
