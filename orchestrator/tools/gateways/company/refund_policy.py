"""policy.evaluate: what the demo company's refund policy says."""

from typing import Annotated

from pydantic import Field

from orchestrator.tools.gateways.company.orders import SERVICE, OrderId
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool

Asked = Annotated[
    str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,2})?$", description="a decimal amount, such as 129.90")
]


class Judgement(ToolResult):
    """`rule` is the rule that decided, `max_amount` the most that may be refunded."""

    order_id: str
    refundable: bool
    rule: str
    max_amount: str
    currency: str
    reason: str


@read_only_tool(
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
async def evaluate_refund_policy(
    context: ToolContext, order_id: OrderId, amount: Asked | None = None
) -> ServiceResponse[Judgement]:
    """Whether an order, or an amount of it, may be refunded, and by which rule."""
    query = {"order_id": order_id} | ({"amount": amount} if amount is not None else {})
    return await context.get("/policy", query=query)
