"""mail.send and mail.find: a message to a customer, and what was sent under a reference."""

from typing import Annotated, Any

import orjson
from pydantic import Field

from orchestrator.core.domain.tool_spec import ReadBack, Reversibility, Risk, Verifier
from orchestrator.tools.gateways.company.orders import SERVICE
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool, tool

Address = Annotated[str, Field(max_length=254, pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+$")]
Subject = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Reference = Annotated[str, Field(min_length=1, max_length=200, description="our own name for the message")]


class Message(ToolResult):
    id: str
    to: str
    subject: str
    text: str
    reference: str


class Messages(ToolResult):
    messages: list[Message]


@tool(
    name="mail.send",
    category="email",
    capability="message",
    risk=Risk.NETWORK,
    reversibility=Reversibility.IRREVERSIBLE,
    service=SERVICE,
    external=True,
    max_retries=0,
    sensitive=("/to", "/text"),
    side_effects="A message leaves the company.",
    effect_sentence="Send a message to {to}: {subject}",
    blast_radius="One recipient; a message cannot be called back.",
    effects=("the message exists under its reference",),
    conflict_keys=("mail:{to}",),
    claims=("have e-mailed", "have emailed", "message has been sent", "was e-mailed"),
    queue="messages",
    facts={"message_id": "/id", "to": "/to", "reference": "/reference"},
    verifier=Verifier(
        name="read_back",
        equal={"/result/to": "/arguments/to", "/result/text": "/arguments/text"},
        read_back=ReadBack(
            tool="mail.find",
            arguments={"reference": "/result/reference"},
            equal={"/messages/0/to": "/arguments/to", "/messages/0/text": "/arguments/text"},
        ),
    ),
)
async def send_mail_message(
    context: ToolContext, to: Address, subject: Subject, text: Text, reference: Reference | None = None
) -> ServiceResponse[Message]:
    """Send a message to a customer. Needs a person's approval; without a reference it is sent under the
    call's key.
    """
    document = {"to": to, "subject": subject, "text": text, "reference": reference or context.key}
    return await context.post("/mail/messages", orjson.dumps(document))


@send_mail_message.lookup
async def find_sent(context: ToolContext, arguments: Any) -> ServiceResponse[Message] | None:
    """The message with this content under the reference it was sent with."""
    reference = arguments.reference or context.key
    listed = await context.get("/mail/messages", query={"reference": reference})
    return listed.newest("messages", to=arguments.to, subject=arguments.subject, text=arguments.text)


@read_only_tool(
    name="mail.find",
    category="live_api",
    capability="message_lookup",
    service=SERVICE,
)
async def find_mail_messages(context: ToolContext, reference: Reference) -> ServiceResponse[Messages]:
    """Find the messages that were sent under a reference, oldest first."""
    return await context.get("/mail/messages", query={"reference": reference})
