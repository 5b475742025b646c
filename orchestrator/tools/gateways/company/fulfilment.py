"""stock.*, payments.authorize, payments.void and shipments.book: an order on its way out of the house.

What is held for an order can be let go of, so each hold names the tool that lets go of it (R-TOOL-15); a
shipment cannot be called back.
"""

from typing import Annotated, Literal

import orjson
from pydantic import Field

from orchestrator.core.domain.tool_spec import Compensation, ReadBack, Reversibility, Risk, Verifier
from orchestrator.tools.gateways.company.orders import SERVICE, OrderId
from orchestrator.tools.gateways.company.payments import Amount
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool, tool

HoldId = Annotated[str, Field(pattern=r"^HD-[0-9]{6,12}$", description="such as HD-000001")]


class Hold(ToolResult):
    """`status` is held, released or used."""

    id: str
    kind: Literal["stock", "payment"]
    order_id: str
    sku: str
    quantity: int
    amount: str
    status: Literal["held", "released", "used"]


class Held(Hold):
    status: Literal["held"]


class Released(Hold):
    status: Literal["released"]


class Shipment(ToolResult):
    id: str
    order_id: str


class Shipments(ToolResult):
    shipments: list[Shipment]


READ = Verifier(
    name="read_back",
    read_back=ReadBack(
        tool="holds.find", arguments={"hold_id": "/result/id"},
        equal={"/id": "/result/id", "/status": "/result/status"},
    ),
)  # fmt: skip
FACTS = {"hold_id": "/id", "order_id": "/order_id", "status": "/status"}


@tool(
    name="stock.reserve",
    category="procurement",
    capability="stock_hold",
    risk=Risk.DELEGATED,
    reversibility=Reversibility.COMPENSABLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/order_id", "/sku"),
    side_effects="Goods are set aside.",
    effect_sentence="Set {quantity} of {sku} aside for order {order_id}.",
    blast_radius="These pieces are nobody else's until they are shipped or let go of.",
    effects=("the goods are held for the order",),
    conflict_keys=("order:{order_id}",),
    compensation=Compensation(
        tool="stock.release",
        arguments={"hold_id": "/result/id"},
        wanted="The goods of {hold_id} are free again.",
    ),
    queue="operations",
    facts=FACTS,
    verifier=READ,
)
async def reserve_stock(
    context: ToolContext,
    order_id: OrderId,
    sku: Annotated[str, Field(min_length=1, max_length=64)],
    quantity: Annotated[int, Field(ge=1, le=1000)],
) -> ServiceResponse[Held]:
    """Set goods aside for an order. Needs a person's approval; `stock.release` lets go of them again."""
    hold = {"kind": "stock", "order_id": order_id, "sku": sku, "quantity": quantity}
    return await context.post("/stock/holds", orjson.dumps(hold))


@reserve_stock.lookup
async def find_reserved(context: ToolContext, _arguments: object) -> ServiceResponse[Held] | None:
    """The hold taken under this call's key."""
    return (await context.get("/stock/holds", query={"key": context.key})).newest("holds")


@tool(
    name="stock.release",
    category="procurement",
    capability="stock_release",
    risk=Risk.DELEGATED,
    reversibility=Reversibility.REVERSIBLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/hold_id",),
    side_effects="Goods that were set aside are free again.",
    effect_sentence="Let go of the goods held as {hold_id}.",
    blast_radius="One order's goods; they can be set aside again.",
    queue="operations",
    facts=FACTS,
    verifier=READ,
)
async def release_stock(context: ToolContext, hold_id: HoldId) -> ServiceResponse[Released]:
    """Let go of goods that are set aside; done twice, it is done once. Needs a person's approval."""
    return await context.post("/stock/releases", context.arguments)


@tool(
    name="payments.authorize",
    category="payment",
    capability="payment_hold",
    risk=Risk.DELEGATED,
    reversibility=Reversibility.COMPENSABLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/order_id", "/amount"),
    side_effects="Money of a customer is held.",
    effect_sentence="Hold {amount} for order {order_id}.",
    blast_radius="One customer; the money is theirs again when it is let go of.",
    effects=("the money is held for the order",),
    conflict_keys=("order:{order_id}",),
    compensation=Compensation(
        tool="payments.void",
        arguments={"hold_id": "/result/id"},
        wanted="The money of {hold_id} is held no more.",
    ),
    amount="/amount",
    queue="finance",
    facts=FACTS,
    verifier=READ,
)
async def authorize_payment(context: ToolContext, order_id: OrderId, amount: Amount) -> ServiceResponse[Held]:
    """Hold an amount for an order. Needs a person's approval; `payments.void` lets go of it again."""
    hold = {"kind": "payment", "order_id": order_id, "amount": amount}
    return await context.post("/payments/holds", orjson.dumps(hold))


@authorize_payment.lookup
async def find_authorized(context: ToolContext, _arguments: object) -> ServiceResponse[Held] | None:
    """The hold taken under this call's key."""
    return (await context.get("/payments/holds", query={"key": context.key})).newest("holds")


@tool(
    name="payments.void",
    category="payment",
    capability="payment_release",
    risk=Risk.DELEGATED,
    reversibility=Reversibility.REVERSIBLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/hold_id",),
    side_effects="Money that was held is the customer's again.",
    effect_sentence="Let go of the money held as {hold_id}.",
    blast_radius="One customer's money; it can be held again while the customer agrees.",
    queue="finance",
    facts=FACTS,
    verifier=READ,
)
async def void_payment(context: ToolContext, hold_id: HoldId) -> ServiceResponse[Released]:
    """Let go of money that is held; done twice, it is done once. Needs a person's approval."""
    return await context.post("/payments/releases", context.arguments)


@tool(
    name="shipments.book",
    category="procurement",
    capability="shipment",
    risk=Risk.DELEGATED,
    reversibility=Reversibility.IRREVERSIBLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/order_id",),
    side_effects="A parcel leaves the house.",
    effect_sentence="Ship order {order_id}.",
    blast_radius="One parcel; it cannot be called back.",
    preconditions=("goods and money are held for the order",),
    effects=("the order is shipped",),
    conflict_keys=("order:{order_id}",),
    claims=("has been shipped", "have shipped", "was shipped"),
    queue="operations",
    facts={"shipment_id": "/id", "order_id": "/order_id"},
    verifier=Verifier(
        name="read_back",
        equal={"/result/order_id": "/arguments/order_id"},
        read_back=ReadBack(
            tool="shipments.find", arguments={"order_id": "/result/order_id"},
            equal={"/shipments/0/id": "/result/id"},
        ),
    ),
)  # fmt: skip
async def book_shipment(context: ToolContext, order_id: OrderId) -> ServiceResponse[Shipment]:
    """Ship an order whose goods are held. Needs a person's approval."""
    return await context.post("/shipments", context.arguments)


@read_only_tool(
    name="holds.find",
    category="live_api",
    capability="hold_lookup",
    service=SERVICE,
    trust="trusted",
    facts=FACTS,
)
async def find_hold(context: ToolContext, hold_id: HoldId) -> ServiceResponse[Hold]:
    """Look at what is held, by its id."""
    return await context.get("/stock/holds/{}", hold_id)


@read_only_tool(
    name="shipments.find", category="live_api", capability="shipment_lookup", service=SERVICE, trust="trusted"
)
async def list_shipments(context: ToolContext, order_id: OrderId) -> ServiceResponse[Shipments]:
    """The shipments of an order, oldest first."""
    return await context.get("/shipments", query={"order_id": order_id})
