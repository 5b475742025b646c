"""orders.lookup: an order of the demo company."""

from typing import Annotated

from pydantic import Field

from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool

SERVICE = "INTERLOCK_DEMO_URL"
OrderId = Annotated[str, Field(min_length=1, max_length=200, description="such as A-1001")]


class Customer(ToolResult):
    name: str
    email: str


class Item(ToolResult):
    sku: str
    name: str
    quantity: int
    unit_price: str
    final_sale: bool


class Order(ToolResult):
    """Amounts are decimal strings in `currency`."""

    id: str
    customer: Customer
    items: list[Item]
    total: str
    currency: str
    status: str
    refunded: str


@read_only_tool(
    name="orders.lookup",
    category="live_api",
    capability="order_lookup",
    service=SERVICE,
    facts={
        "order_id": "/id",
        "customer": "/customer/name",
        "email": "/customer/email",
        "total": "/total",
        "currency": "/currency",
        "status": "/status",
        "refunded": "/refunded",
    },
)
async def look_up_order(context: ToolContext, order_id: OrderId) -> ServiceResponse[Order]:
    """Look up an order: customer, items, total, status, and what was refunded of it."""
    return await context.get("/orders/{}", order_id)
