"""tickets.*: the demo company's tickets. Opening one honours keys and can be taken back by closing it."""

from typing import Annotated, Literal

from pydantic import Field

from orchestrator.core.domain.tool_spec import Compensation, ReadBack, Reversibility, Risk, Verifier
from orchestrator.tools.gateways.company.orders import SERVICE, OrderId
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool, tool

TicketId = Annotated[str, Field(pattern=r"^TK-[0-9]{6,12}$", description="such as TK-000001")]
FACTS = {"ticket_id": "/id", "order_id": "/order_id", "status": "/status"}
READ = Verifier(
    name="read_back",
    read_back=ReadBack(
        tool="tickets.read", arguments={"ticket_id": "/result/id"},
        equal={
            "/id": "/result/id", "/status": "/result/status", "/subject": "/result/subject",
            "/text": "/result/text",
        },
    ),
)  # fmt: skip


class Ticket(ToolResult):
    """`status` is open or closed."""

    id: str
    order_id: str
    subject: str
    text: str
    status: Literal["open", "closed"]


class Opened(Ticket):
    status: Literal["open"]


class Closed(Ticket):
    status: Literal["closed"]


@read_only_tool(
    name="tickets.read", category="live_api", capability="ticket_lookup", service=SERVICE, facts=FACTS
)  # fmt: skip
async def read_ticket(context: ToolContext, ticket_id: TicketId) -> ServiceResponse[Ticket]:
    """Read a ticket: its order, subject, text, and whether it is open."""
    return await context.get("/tickets/{}", ticket_id)


@tool(
    name="tickets.open",
    category="live_api",
    capability="ticket",
    risk=Risk.NETWORK,
    reversibility=Reversibility.COMPENSABLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/order_id", "/text"),
    side_effects="A ticket stands in the company's help desk.",
    effect_sentence="Open a ticket for order {order_id}: {subject}",
    blast_radius="One ticket that people of the help desk will work on.",
    effects=("the ticket is open",),
    conflict_keys=("ticket:{order_id}",),
    claims=("opened a ticket", "ticket has been opened"),
    compensation=Compensation(
        tool="tickets.close",
        arguments={"ticket_id": "/result/id"},
        wanted="The ticket {ticket_id} is closed.",
    ),
    queue="support",
    facts=FACTS,
    verifier=READ.evolve(equal={
        "/result/order_id": "/arguments/order_id", "/result/subject": "/arguments/subject",
        "/result/text": "/arguments/text",
    }),
)  # fmt: skip
async def open_ticket(
    context: ToolContext,
    order_id: OrderId,
    subject: Annotated[str, Field(min_length=1, max_length=200)],
    text: Annotated[str, Field(min_length=1, max_length=4_000)],
) -> ServiceResponse[Opened]:
    """Open a ticket for an order. Needs a person's approval; `tickets.close` takes it back."""
    return await context.post("/tickets", context.arguments)


@open_ticket.lookup
async def find_opened(context: ToolContext, _arguments: object) -> ServiceResponse[Opened] | None:
    """The ticket opened under this call's key."""
    return (await context.get("/tickets", query={"key": context.key})).newest("tickets")


@tool(
    name="tickets.close",
    category="live_api",
    capability="ticket_closure",
    risk=Risk.NETWORK,
    reversibility=Reversibility.REVERSIBLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    sensitive=("/ticket_id",),
    side_effects="A ticket is closed.",
    effect_sentence="Close the ticket {ticket_id}.",
    blast_radius="One ticket; nobody works on it any more.",
    queue="support",
    facts=FACTS,
    verifier=READ,
)
async def close_ticket(context: ToolContext, ticket_id: TicketId) -> ServiceResponse[Closed]:
    """Close a ticket; done twice, it is done once. Needs a person's approval."""
    return await context.post("/tickets/closures", context.arguments)
