"""policy.evaluate: what the demo company's refund policy says."""

from typing import Annotated

from pydantic import Field

from orchestrator.gateways.tools.builtin.orders import SERVICE, OrderId
from orchestrator.gateways.tools.registry import Told, reading
from orchestrator.gateways.tools.service_client import Answer, ToolContext

Asked = Annotated[
    str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,2})?$", description="a decimal amount, such as 129.90")
]


class Judgement(Told):
    """`rule` is the rule that decided, `max_amount` the most that may be refunded."""

    order_id: str
    refundable: bool
    rule: str
    max_amount: str
    currency: str
    reason: str


@reading(
    name="policy.evaluate",
    category="live_api",
    capability="refund_policy",
    service=SERVICE,
    trust="trusted",
    facts={
        "refundable": "/refundable",
        "rule": "/rule",
        "max_amount": "/max_amount",
        "currency": "/currency",
        "order_id": "/order_id",
    },
)
async def evaluate(context: ToolContext, order_id: OrderId, amount: Asked | None = None) -> Answer[Judgement]:
    """Whether an order, or an amount of it, may be refunded, and by which rule."""
    query = {"order_id": order_id} | ({"amount": amount} if amount is not None else {})
    return await context.get("/policy", query=query)
