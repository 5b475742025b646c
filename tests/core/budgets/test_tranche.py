"""A run's share of its tenant's ceilings always covers the run, and never passes a ceiling."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from budgets.core.posting import Cause, LineState
from budgets.core.tranche import (
    Tranche,
    TrancheChanges,
    TrancheReconciliation,
    chunk_for,
    is_covered_by_tranche,
    rebalance_tranches,
)
from tests.core.budgets.figures import decimals
from tests.proves import proves

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY, MONTH, OLD_DAY = UUID(int=1), UUID(int=2), UUID(int=3)
CENTS = st.integers(0, 500).map(lambda cents: Decimal(cents) / 100)
FRESH = Tranche(
    id=UUID(int=9),
    day=DAY,
    month=MONTH,
    starts_at=NOON - timedelta(hours=12),
    ends_at=NOON + timedelta(hours=12),
)
OLD = FRESH._replace(
    id=UUID(int=8),
    day=OLD_DAY,
    starts_at=NOON - timedelta(hours=36),
    ends_at=NOON - timedelta(hours=12),
)


def want(amount: Decimal, tranche: UUID | None = None) -> TrancheChanges:
    """A drawing that newly reserves `amount`."""
    drawn = TrancheChanges(wanted=amount)
    drawn.draw(tranche, amount, Decimal(0))
    return drawn


def lines(day: Decimal | None, month: Decimal | None = None) -> dict[UUID, LineState]:
    """The tenant's lines with these limits, unused."""
    return {DAY: LineState(limit=day), MONTH: LineState(limit=month), OLD_DAY: LineState(limit=day)}


def square(
    drawn: TrancheChanges,
    tranches: tuple[Tranche, ...],
    standing: Mapping[UUID, LineState],
    chunk: str = "0.25",
) -> TrancheReconciliation:
    """The last squaring of a drawing that is not refused."""
    done, refused = rebalance_tranches(
        drawn, tranches, standing, opened=FRESH, at=NOON, chunk=Decimal(chunk), run_left=None
    )
    assert refused is None
    return done[-1]


def test_the_first_reservation_opens_a_tranche_larger_than_its_need() -> None:
    squaring = square(want(Decimal("0.04")), (), lines(Decimal(5)))
    assert (squaring.opens, squaring.held, squaring.cause) == (True, Decimal("0.25"), Cause.TRANCHE)


def test_a_tranche_that_covers_the_need_leaves_the_tenants_lines_alone() -> None:
    held = FRESH._replace(held=Decimal("0.25"), used=Decimal("0.20"))
    assert is_covered_by_tranche(want(Decimal("0.05"), held.id), (held,), NOON)
    assert not is_covered_by_tranche(want(Decimal("0.06"), held.id), (held,), NOON)


@proves("R-BUDGET-9", part="near the ceiling")
def test_near_the_ceiling_a_run_gets_what_is_left_and_then_is_refused() -> None:
    assert square(want(Decimal("0.04")), (), lines(Decimal("0.10"))).held == Decimal("0.10")
    assert square(want(Decimal("0.04")), (), lines(Decimal("0.04"))).held == Decimal("0.04")
    _, refused = rebalance_tranches(
        want(Decimal("0.04")),
        (),
        lines(Decimal("0.03")),
        opened=FRESH,
        at=NOON,
        chunk=Decimal(1),
        run_left=None,
    )
    assert refused is not None
    assert (refused.account, refused.left) == ("tenant_day", Decimal("0.03"))


def test_the_month_refuses_for_itself() -> None:
    _, refused = rebalance_tranches(
        want(Decimal(1)),
        (),
        lines(None, Decimal("0.5")),
        opened=FRESH,
        at=NOON,
        chunk=Decimal(1),
        run_left=None,
    )
    assert refused is not None
    assert refused.account == "tenant_month"


def test_a_run_never_holds_more_than_it_may_spend_itself() -> None:
    done, _ = rebalance_tranches(
        want(Decimal("0.04")),
        (),
        lines(None),
        opened=FRESH,
        at=NOON,
        chunk=Decimal(1),
        run_left=Decimal("0.01"),
    )
    assert done[-1].held == Decimal("0.05")


@proves("R-BUDGET-9", part="midnight")
def test_a_call_across_midnight_settles_on_the_day_that_reserved_it() -> None:
    old = OLD._replace(held=Decimal("0.25"), reserved=Decimal("0.10"), used=Decimal("0.02"))
    drawn = TrancheChanges()
    drawn.draw(old.id, Decimal("-0.10"), Decimal("0.07"))
    standing = lines(Decimal(5)) | {OLD_DAY: LineState(limit=Decimal(5), reserved=Decimal("0.25"))}
    squaring = square(drawn, (old,), standing)
    assert (squaring.tranche.day, squaring.booked, squaring.held_more) == (
        OLD_DAY,
        Decimal("0.09"),
        Decimal("-0.25"),
    )
    assert squaring.closes


def test_an_overrun_is_booked_at_once() -> None:
    held = FRESH._replace(held=Decimal("0.10"), reserved=Decimal("0.10"))
    drawn = TrancheChanges()
    drawn.draw(held.id, Decimal("-0.10"), Decimal("0.40"))
    assert not is_covered_by_tranche(drawn, (held,), NOON)
    standing = lines(Decimal("0.2")) | {DAY: LineState(limit=Decimal("0.2"), reserved=Decimal("0.10"))}
    squaring = square(drawn, (held,), standing)
    assert (squaring.booked, squaring.held) == decimals("0.40", 0)


def test_the_chunk_is_the_tenants_or_an_eighth_of_the_run() -> None:
    assert chunk_for(Decimal(8), None) == 1
    assert chunk_for(Decimal("0.8"), None) == Decimal("0.25")
    assert chunk_for(Decimal(8), Decimal("0.05")) == Decimal("0.05")


@proves("R-BUDGET-9", part="property")
@given(
    limits=st.tuples(CENTS, CENTS),
    figures=st.tuples(CENTS, CENTS, CENTS, CENTS),
    wanted=CENTS.filter(bool),
    chunk=CENTS,
)
def test_whatever_is_granted_covers_the_run_and_fits_the_ceilings(
    limits: tuple[Decimal, Decimal],
    figures: tuple[Decimal, Decimal, Decimal, Decimal],
    wanted: Decimal,
    chunk: Decimal,
) -> None:
    others, held, used, reserved = figures
    tranche = FRESH._replace(held=held + used + reserved, used=used, reserved=reserved)
    standing = {
        account: LineState(limit=limit, reserved=tranche.held, used=others)
        for account, limit in zip((DAY, MONTH), limits, strict=True)
    }
    done, refused = rebalance_tranches(
        want(wanted, tranche.id), (tranche,), standing, opened=FRESH, at=NOON, chunk=chunk, run_left=None
    )
    if refused is not None:
        assert refused.left < wanted
        return
    squaring = done[-1]
    assert squaring.held >= reserved + wanted
    for line in standing.values():
        assert (
            line.limit is None
            or line.used + squaring.booked + line.reserved + squaring.held_more <= line.limit
        )
