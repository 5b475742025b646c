"""email.draft and email.send: a letter the run keeps, and one that leaves the house (R-TOOL-19)."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated
from uuid import UUID

from pydantic import Field

from orchestrator.core.domain.tool_spec import Reversibility, Risk, Verifier
from orchestrator.core.tools.destinations import ADDRESS
from orchestrator.outbound.gateways.monotonic_clock import wall_now
from orchestrator.tools.gateways.egress.service_client import CallFailed, ToolContext
from orchestrator.tools.gateways.egress.smtp import (
    Letter,
    build_mail_message,
    mail_post,
    message_id,
    no_mail_server,
    send_letter,
)
from orchestrator.tools.gateways.registry import ToolResult, tool
from orchestrator.tools.gateways.tenant_services import in_house, keep_draft
from orchestrator.tools.queries.destinations import draft_of, kept_draft
from traces.core.canonical import encode_canonical

Recipient = Annotated[str, Field(pattern=ADDRESS, max_length=254)]
To = Annotated[list[Recipient], Field(min_length=1, max_length=20)]
Cc = Annotated[list[Recipient], Field(max_length=20)]
Subject = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f\u2028\u2029]*$")]
Text = Annotated[str, Field(min_length=1, max_length=50_000, pattern=r"^[^\x00]*$")]
DraftId = Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$", description="a draft that says the same")]
SAME = {
    "/result/to": "/arguments/to", "/result/subject": "/arguments/subject", "/result/text": "/arguments/text",
}  # fmt: skip


class Drafted(ToolResult):
    """A letter that nobody has got, as the house has it now."""

    id: str
    to: list[str]
    cc: list[str]
    subject: str
    text: str
    sha256: str


class Sent(ToolResult):
    """A letter that the mail server has taken for all of its recipients. `answer` is the server's word."""

    message_id: str
    sender: str
    to: list[str]
    cc: list[str]
    subject: str
    text: str
    answer: str


@tool(
    name="email.draft",
    category="email",
    capability="letter_draft",
    risk=Risk.LOCAL_WRITE,
    reversibility=Reversibility.REVERSIBLE,
    honours_keys=True,
    trust="trusted",
    side_effects="A draft is kept with the run; nobody gets it.",
    effect_sentence="Keep a draft of a letter to {to}: {subject}",
    blast_radius="One draft, in this house.",
    effects=("the draft is kept",),
    claims=("drafted a letter", "have drafted"),
    facts={"draft": "/id", "sha256": "/sha256"},
    verifier=Verifier(name="same", equal=SAME),
)
async def draft_email(
    context: ToolContext,
    to: To,
    subject: Subject,
    text: Text,
    cc: Cc = [],  # noqa: B006 - never changed; a schema wants a plain default
) -> Drafted:
    """Write a letter and keep it with the run. Nothing is sent."""
    body = {"to": to, "cc": cc, "subject": subject, "text": text}
    if context.run is None:
        raise CallFailed("refused", sent=False, detail=b"a draft is kept with a run")
    run, digest = context.run, digest_of(body)
    context.watch.sent = True
    number = await in_house(context, lambda: keep_draft(run, context.key, body, digest))
    kept = await in_house(context, lambda: kept_draft(run, number))
    # Without `cc` among its arguments no verifier could compare it: all of the letter is compared here.
    if kept is None or kept != (body, digest):
        raise CallFailed("malformed", sent=True, detail=b"the draft that is kept says something else")
    return Drafted.model_validate({"id": str(number), **kept[0], "sha256": kept[1]})


@tool(
    name="email.send",
    unset=no_mail_server,
    category="email",
    capability="letter",
    risk=Risk.NETWORK,
    reversibility=Reversibility.IRREVERSIBLE,
    external=True,
    max_retries=0,
    timeout_ms=30_000,
    sensitive=("/to", "/cc", "/subject", "/text"),
    side_effects="A letter leaves the house.",
    effect_sentence="Send a letter to {to}: {subject}",
    blast_radius="The recipients named; a letter cannot be called back.",
    effects=("the mail server has the letter",),
    conflict_keys=("email:{to}",),
    claims=("have e-mailed", "have emailed", "sent the letter", "letter has been sent"),
    queue="messages",
    # The server answers that it took the letter and not what it took: there is nothing to compare.
    facts={"message_id": "/message_id", "to": "/to", "subject": "/subject"},
)
async def send_email(
    context: ToolContext,
    to: To,
    subject: Subject,
    text: Text,
    cc: Cc = [],  # noqa: B006 - never changed; a schema wants a plain default
    draft: DraftId | None = None,
) -> Sent:
    """Send a letter. Needs a person's approval. With a draft it has to say the same; it goes to all
    recipients or to none.
    """
    if draft is not None:
        await _as_drafted(context, draft, {"to": to, "cc": cc, "subject": subject, "text": text})
    post = await mail_post(context)
    letter = Letter(to=tuple(to), cc=tuple(cc), subject=subject, text=text)
    message = build_mail_message(letter, post.server, key=context.key, at=wall_now())
    answer = await send_letter(context, letter, message, post)
    return Sent(
        message_id=message_id(context.key, post.server), sender=post.server.sender, to=to, cc=cc,
        subject=subject, text=text, answer=answer,
    )  # fmt: skip


def digest_of(body: Mapping[str, object]) -> str:
    """The digest of a letter's content."""
    return sha256(encode_canonical(dict(body))).hexdigest()


async def _as_drafted(context: ToolContext, draft: str, body: Mapping[str, object]) -> None:
    """Raises CallFailed where the run has no such draft, or it says something else."""
    run = context.run
    try:
        number = UUID(draft)
    except ValueError:
        raise CallFailed("refused", sent=False, detail=b"this is no draft") from None
    digest = await in_house(context, lambda: draft_of(run, number)) if run is not None else None
    if digest != digest_of(body):
        raise CallFailed("refused", sent=False, detail=b"the run has no draft that says this")
