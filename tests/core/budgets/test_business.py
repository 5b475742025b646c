"""The business figure adds up everything and limits nothing."""

from decimal import Decimal

from budgets.core.amounts import Vector
from budgets.core.dimension import Dimension
from budgets.core.posting import LineState, Reserve, explain_posting_refusal, plan_posting
from budgets.core.statistics.business_cost import Rates, business_parts
from tests.proves import proves

USED = Vector.of(
    {
        "cost_usd": Decimal("0.50"),
        "input_tokens": Decimal(900),
        "output_tokens": Decimal(100),
        "model_turns": Decimal(3),
        "tool_calls": Decimal(2),
        "external_calls": Decimal(1),
    }
)
RATES = Rates(
    token=Decimal("0.0001"),
    model_call=Decimal("0.01"),
    tool_call=Decimal("0.02"),
    api_call=Decimal("0.05"),
    gpu_second=Decimal("0.001"),
    human_review=Decimal(4),
)


@proves("R-BUDGET-1", part="one figure")
def test_each_kind_of_work_has_its_price() -> None:
    parts = business_parts(USED, RATES, gpu_seconds=Decimal(60), human_reviews=1)
    assert {part.name: part.usd for part in parts} == {
        "charged": Decimal("0.50"), "token": Decimal("0.10"), "model_call": Decimal("0.03"),
        "tool_call": Decimal("0.04"), "api_call": Decimal("0.05"), "gpu_second": Decimal("0.06"),
        "human_review": Decimal(4),
    }  # fmt: skip


@proves("R-BUDGET-1")
def test_no_dimension_buys_room_on_another() -> None:
    lines = {dimension: LineState(limit=Decimal(10**9)) for dimension in Dimension}
    for dimension in Dimension:
        tight = {**lines, dimension: LineState(limit=Decimal(1))}
        asked = {name.value: Decimal(2) for name in Dimension}
        refused = explain_posting_refusal(tight, plan_posting((), (Reserve(effect_id="e", amounts=asked),)))
        assert refused is not None
        assert refused.dimension is dimension
