"""payments.refund and payments.find_refund: money back, once per key, and the read-back that proves it."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.core.domain.tool_spec import QuorumStep, ReadBack, Reversibility, Risk, Verifier
from orchestrator.tools.gateways.company.orders import SERVICE, OrderId
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool, tool

Amount = Annotated[
    str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,2})?$", description="a decimal amount, such as 129.90")
]
FACTS = {"refund_id": "/id", "amount": "/amount", "currency": "/currency", "order_id": "/order_id"}


class Refund(ToolResult):
    id: str
    order_id: str
    amount: str
    currency: str
    status: str
    key: str


@tool(
    name="payments.refund",
    category="payment",
    capability="refund",
    risk=Risk.DESTRUCTIVE,
    reversibility=Reversibility.IRREVERSIBLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    max_retries=2,
    sensitive=("/amount", "/order_id"),
    side_effects="Money leaves the company's account.",
    effect_sentence="Refund {amount} {currency} for order {order_id}.",
    blast_radius="One customer, at most the order's total; it cannot be taken back.",
    preconditions=("the refund policy allows the amount",),
    effects=("the refund exists under the call's key",),
    conflict_keys=("order:{order_id}",),
    claims=("has been refunded", "have been refunded", "have refunded", "was refunded"),
    amount="/amount",
    currency="/currency",
    quorum=(QuorumStep(up_to=Decimal(200), currency="USD", approvers=1), QuorumStep(approvers=2)),
    queue="finance",
    facts=FACTS,
    verifier=Verifier(
        name="read_back",
        equal={
            "/result/order_id": "/arguments/order_id",
            "/result/amount": "/arguments/amount",
            "/result/currency": "/arguments/currency",
        },
        read_back=ReadBack(
            tool="payments.find_refund",
            arguments={"refund_id": "/result/id"},
            equal={"/amount": "/arguments/amount", "/order_id": "/arguments/order_id", "/id": "/result/id"},
        ),
    ),
)
async def refund_payment(
    context: ToolContext,
    order_id: OrderId,
    amount: Amount,
    currency: Literal["USD", "EUR"],
    reason: Annotated[str, Field(max_length=2_000)] = "",
) -> ServiceResponse[Refund]:
    """Refund an amount of an order to the customer. Needs a person's approval; cannot be taken back."""
    # The very bytes that were approved are sent: they are the service's own document (G2).
    made = await context.post("/payments/refunds", context.arguments)
    if not _is_amount(made, amount):
        made.contradicts("another amount was refunded")
    return made


def _is_amount(made: ServiceResponse[Refund], amount: str) -> bool:
    try:
        return Decimal(made.json()["amount"]) == Decimal(amount)
    except (ValueError, TypeError, KeyError, ArithmeticError):
        # What is no refund at all is judged by its schema, as it came.
        return True


@refund_payment.lookup
async def find_by_key(context: ToolContext, _arguments: object) -> ServiceResponse[Refund] | None:
    """The refund made under this call's key."""
    listed = await context.get("/payments/refunds", query={"key": context.key})
    return listed.newest("refunds")


@read_only_tool(
    name="payments.find_refund",
    category="live_api",
    capability="refund_lookup",
    service=SERVICE,
    trust="trusted",
    facts=FACTS,
)
async def find_refund(
    context: ToolContext, refund_id: Annotated[str, Field(pattern=r"^RF-[0-9]{1,12}$")]
) -> ServiceResponse[Refund]:
    """Find a refund by its id."""
    return await context.get("/payments/refunds/{}", refund_id)
