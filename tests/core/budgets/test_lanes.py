"""Lanes draw from their parent's remaining budget; what they do not use returns (R-BUDGET-8)."""

from dataclasses import dataclass, field
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from budgets.core.child_accounts import build_lane_reservation, build_lane_settlement, lane_limits
from budgets.core.dimension import Dimension
from budgets.core.posting import LineState, Reserve, Settle, apply_plan, explain_posting_refusal, plan_posting
from tests.proves import proves

Lines = dict[Dimension, LineState]
COUNTED = (Dimension.STEPS, Dimension.TOOL_CALLS, Dimension.COST_USD)
D = Decimal


@dataclass
class Account:
    """An account in memory, moved by the same arithmetic as the tables."""

    lines: Lines
    open: dict[str, Reserve] = field(default_factory=dict)

    def reserve(self, wanted: Reserve) -> bool:
        """Hold it; False where a line cannot give it, and then nothing has changed."""
        plan = plan_posting((), (wanted,))
        if explain_posting_refusal(self.lines, plan) is not None:
            return False
        self.lines = apply_plan(self.lines, plan)
        self.open[wanted.effect_id] = wanted
        return True

    def settle(self, settlement: Settle) -> None:
        """Book it."""
        self.lines = apply_plan(self.lines, plan_posting((settlement,), ()))
        del self.open[settlement.effect_id]


def account(**limits: int | None) -> Account:
    """An account with these limits; others have none."""
    return Account(
        {
            name: LineState(limit=None if (limit := limits.get(name.value)) is None else D(limit))
            for name in Dimension
        }
    )


def open_lane(parent: Account, name: str, **wanted: int) -> Account | None:
    """A lane on its parent; None where the parent cannot give it."""
    limits = lane_limits(parent.lines, {key: D(amount) for key, amount in wanted.items()})
    if not parent.reserve(build_lane_reservation(name, limits)):
        return None
    return Account({dimension: LineState(limit=limit) for dimension, limit in limits.items()})


def end_lane(parent: Account, name: str, lane: Account) -> None:
    """Give back what the lane did not use."""
    parent.settle(build_lane_settlement(name, parent.open[f"lane:{name}"], lane.lines))


def call(spender: Account, effect: str, calls: int, spends: bool = True) -> bool:
    """One effect that takes what it reserved, or nothing of it."""
    amounts = {"tool_calls": D(calls), "cost_usd": D(calls) / 10}
    if not spender.reserve(Reserve(effect_id=effect, amounts=amounts)):
        return False
    spender.settle(Settle(effect_id=effect, reserved=amounts, actual=amounts if spends else {}))
    return True


@proves("R-BUDGET-8", part="draws and returns")
def test_a_lane_holds_what_it_may_spend_and_gives_back_the_rest() -> None:
    parent = account(tool_calls=10, cost_usd=5, depth=2)
    lane = open_lane(parent, "a", tool_calls=4)
    assert lane is not None
    assert [parent.lines[name].left for name in (Dimension.TOOL_CALLS, Dimension.COST_USD)] == [6, 0]
    assert lane.lines[Dimension.DEPTH].limit == 1
    assert call(lane, "one", 3)
    assert not call(lane, "two", 2)
    end_lane(parent, "a", lane)
    assert parent.lines[Dimension.TOOL_CALLS] == LineState(limit=D(10), used=D(3))
    assert parent.lines[Dimension.COST_USD].left == D("4.7")


@proves("R-BUDGET-8", part="never more than the parent has left")
def test_a_lane_is_given_no_more_than_is_left() -> None:
    parent = account(tool_calls=10)
    assert call(parent, "own", 8)
    lane = open_lane(parent, "a", tool_calls=50)
    assert lane is not None
    assert lane.lines[Dimension.TOOL_CALLS].limit == 2
    assert not call(parent, "more", 1)
    assert lane.lines[Dimension.STEPS].limit is None


def test_a_lane_of_a_lane_draws_from_it() -> None:
    parent = account(tool_calls=10, depth=2)
    lane = open_lane(parent, "a", tool_calls=6)
    assert lane is not None
    below = open_lane(lane, "b", tool_calls=5)
    assert below is not None
    assert call(below, "deep", 5)
    end_lane(lane, "b", below)
    assert lane.lines[Dimension.TOOL_CALLS] == LineState(limit=D(6), used=D(5))
    end_lane(parent, "a", lane)
    assert parent.lines[Dimension.TOOL_CALLS].left == 5


@proves("R-BUDGET-8", part="property")
@settings(max_examples=200)
@given(
    limit=st.integers(0, 12),
    moves=st.lists(
        st.tuples(
            st.sampled_from(["open", "end", "spend", "waste"]), st.integers(0, 3), st.integers(1, 6)
        ),
        max_size=40,
    ),
)  # fmt: skip
def test_a_family_never_spends_more_than_its_parent_was_given(
    limit: int, moves: list[tuple[str, int, int]]
) -> None:
    parent = account(tool_calls=limit, cost_usd=limit)
    lanes: dict[str, Account] = {}
    for number, (move, which, amount) in enumerate(moves):
        name = f"l{which}"
        if move == "open" and name not in lanes:
            if (lane := open_lane(parent, name, tool_calls=amount, cost_usd=amount)) is not None:
                lanes[name] = lane
        elif move == "end" and name in lanes:
            end_lane(parent, name, lanes.pop(name))
        elif move in ("spend", "waste"):
            call(lanes.get(name, parent), f"e{number}", amount, spends=move == "spend")
        for dimension in COUNTED:
            line = parent.lines[dimension]
            assert line.limit is None or line.used + line.reserved <= line.limit
            inside = sum((lane.lines[dimension].used for lane in lanes.values()), D(0))
            assert line.limit is None or inside <= line.reserved
    for name in list(lanes):
        end_lane(parent, name, lanes.pop(name))
    assert all(line.reserved == 0 for line in parent.lines.values())
