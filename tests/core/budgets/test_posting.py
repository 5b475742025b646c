"""The arithmetic of a posting: what is settled, held, refused and overrun."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from budgets.core.dimension import Dimension
from budgets.core.posting import (
    Cause,
    LineState,
    Reserve,
    Settle,
    apply_plan,
    explain_posting_refusal,
    plan_posting,
)
from tests.core.budgets.figures import decimals
from tests.proves import proves

ONE = Decimal(1)
DIMENSIONS = ("steps", "tool_calls", "input_tokens", "cost_usd")
AMOUNTS = st.dictionaries(st.sampled_from(DIMENSIONS), st.decimals(0, 20, places=2), max_size=4)


def lines(**limits: str | None) -> dict[Dimension, LineState]:
    """Lines with the limits named, all others without one."""
    return {
        dimension: LineState(limit=Decimal(text) if (text := limits.get(dimension.value)) else None)
        for dimension in Dimension
    }


def test_a_reservation_is_held_and_its_settlement_gives_the_rest_back() -> None:
    held = apply_plan(
        lines(), plan_posting((), (Reserve(effect_id="e", amounts={"input_tokens": Decimal(9)}),))
    )
    settle = Settle(effect_id="e", reserved={"input_tokens": Decimal(9)}, actual={"input_tokens": Decimal(4)})
    after = apply_plan(held, plan_posting((settle,), ()))[Dimension.INPUT_TOKENS]
    assert (after.used, after.reserved) == decimals(4, 0)


@proves("R-BUDGET-2", part="overrun")
def test_what_a_provider_took_beyond_the_reservation_is_a_named_overrun() -> None:
    settle = Settle(
        effect_id="e", reserved={"input_tokens": Decimal(9)}, actual={"input_tokens": Decimal(12)}
    )
    plan = plan_posting((settle,), ())
    assert [draft.cause for draft in plan.drafts] == [Cause.SETTLE, Cause.OVERRUN]
    assert [draft.used["input_tokens"] for draft in plan.drafts] == [9, 3]
    assert dict(plan.overrun) == {"input_tokens": 3}


@proves("R-BUDGET-16")
def test_a_limit_of_zero_forbids_that_kind_and_stops_no_other() -> None:
    free = plan_posting((), (Reserve(effect_id="e", amounts={"tool_calls": ONE}),))
    asks = plan_posting((), (Reserve(effect_id="e", amounts={"tool_calls": ONE, "side_effects": ONE}),))
    standing = lines(side_effects="0", tool_calls="5")
    assert explain_posting_refusal(standing, free) is None
    refused = explain_posting_refusal(standing, asks)
    assert refused is not None
    assert refused.dimension.value == "side_effects"
    assert (refused.limit, refused.wanted, refused.left) == decimals(0, 1, 0)


@proves("R-BUDGET-16", part="gauges")
def test_a_gauge_is_compared_at_use_and_not_summed() -> None:
    standing = lines(context_tokens="100")
    for _ in range(3):
        plan = plan_posting((), (Reserve(effect_id="e", amounts={"context_tokens": Decimal(90)}),))
        assert explain_posting_refusal(standing, plan) is None
        standing = apply_plan(standing, plan)
    assert standing[Dimension.CONTEXT_TOKENS].reserved == 0
    too_much = plan_posting((), (Reserve(effect_id="e", amounts={"context_tokens": Decimal(101)}),))
    assert explain_posting_refusal(standing, too_much) is not None


def test_an_effect_that_did_not_start_is_released() -> None:
    plan = plan_posting((Settle(effect_id="e", reserved={"steps": ONE}, actual={}),), ())
    assert plan.drafts[0].cause is Cause.RELEASE


def test_time_that_passed_is_booked_with_the_effect_that_ended() -> None:
    clock = Settle(effect_id="", reserved={}, actual={"wall_clock_seconds": Decimal("1.5")})
    ended = Settle(effect_id="e", reserved={"steps": ONE}, actual={"steps": ONE})
    together = plan_posting((ended, clock), ())
    assert [dict(draft.used) for draft in together.drafts] == [
        {"steps": 1, "wall_clock_seconds": Decimal("1.5")}
    ]
    assert not together.overrun
    assert [draft.effect_id for draft in plan_posting((clock,), ()).drafts] == [None]


@proves("R-BUDGET-2", part="never beyond the limit")
@given(
    limits=st.dictionaries(st.sampled_from(DIMENSIONS), st.decimals(0, 30, places=2)),
    steps=st.lists(st.tuples(AMOUNTS, AMOUNTS), max_size=12),
)
def test_no_order_of_reservations_and_settlements_passes_a_limit(
    limits: dict[str, Decimal], steps: list[tuple[dict[str, Decimal], dict[str, Decimal]]]
) -> None:
    standing = {dimension: LineState(limit=limits.get(dimension.value)) for dimension in Dimension}
    for number, (worst, measured) in enumerate(steps):
        plan = plan_posting((), (Reserve(effect_id=str(number), amounts=worst),))
        if explain_posting_refusal(standing, plan) is not None:
            continue
        standing = apply_plan(standing, plan)
        within = {name: min(amount, worst.get(name, Decimal(0))) for name, amount in measured.items()}
        if number % 3:
            settle = Settle(effect_id=str(number), reserved=worst, actual=within)
            standing = apply_plan(standing, plan_posting((settle,), ()))
        for line in standing.values():
            assert line.used >= 0
            assert line.reserved >= 0
            assert line.limit is None or line.used + line.reserved <= line.limit


@given(worst=AMOUNTS, measured=AMOUNTS)
def test_the_entries_of_a_posting_add_up_to_its_changes(
    worst: dict[str, Decimal], measured: dict[str, Decimal]
) -> None:
    settle = Settle(effect_id="e", reserved=worst, actual=measured)
    plan = plan_posting((settle,), (Reserve(effect_id="f", amounts=worst),))
    for dimension, change in plan.changes.items():
        assert sum(draft.used.amount(dimension) for draft in plan.drafts) == change.used
        assert sum(draft.reserved.amount(dimension) for draft in plan.drafts) == change.reserved
