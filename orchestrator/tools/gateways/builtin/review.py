"""review.*: put something before people without waiting for them, and see what they said (R-TOOL-19).

The run goes on; a person of the queue takes the item on the page *Reviews* and answers it once. The answer
is a finding and allows no call: what changes something still passes its own gate.
"""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from orchestrator.core.approval.review_item import CATEGORY, MOST_EVIDENCE, QUEUE, Severity
from orchestrator.core.domain.tool_spec import ReadBack, Reversibility, Risk, Verifier
from orchestrator.reviews.queries.reviews import ReviewState, item_of
from orchestrator.tools.gateways.egress.service_client import ToolContext
from orchestrator.tools.gateways.ports.review_port import review_asker
from orchestrator.tools.gateways.registry import ToolResult, tool
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.gateways.tool_errors import build_tool_refusal, in_words


class Item(ToolResult):
    """`state`: waiting, taken or answered; `finding`: confirmed, objected or undecided, in an answer's note
    the person's own words. What was asked is named by its digest alone: it is the run's own word."""

    id: str
    sha256: str
    queue: str
    severity: str
    state: str
    finding: str
    note: str


@tool(
    name="review.read", category=CATEGORY, capability="review_read", risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE, trust="trusted", rate_per_minute=120, timeout_ms=10_000,
    facts={"review": "/id", "state": "/state", "finding": "/finding"},
    verifier=Verifier(name="asked", equal={"/result/id": "/arguments/item"}),
)  # fmt: skip
async def read_review_item(
    context: ToolContext,
    item: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$", description="from review.request")],
) -> Item:
    """How an item of the review queue stands, and what a person found."""
    try:
        wanted = UUID(item)
    except ValueError:
        raise build_tool_refusal("this is no id of an item") from None
    return await in_house(context, lambda: in_words(lambda: _build_item(item_of(wanted))))


@tool(
    name="review.request", category=CATEGORY, capability="review_request", risk=Risk.LOCAL_WRITE,
    reversibility=Reversibility.REVERSIBLE, honours_keys=True, trust="trusted", rate_per_minute=20,
    timeout_ms=10_000, side_effects="An item stands in a queue that people work through.",
    effect_sentence="Ask the queue {queue} to look at: {subject}", blast_radius="One item for one person.",
    effects=("the item waits for a person",), claims=("asked for a review", "passed it to review"),
    facts={"review": "/id", "queue": "/queue", "severity": "/severity", "state": "/state"},
    verifier=Verifier(
        name="read_back",
        equal={"/result/queue": "/arguments/queue", "/result/severity": "/arguments/severity"},
        read_back=ReadBack(
            tool="review.read", arguments={"item": "/result/id"},
            equal={"/id": "/result/id", "/sha256": "/result/sha256"},
        ),
    ),
)  # fmt: skip
async def create_review_item(
    context: ToolContext,
    queue: Annotated[str, Field(pattern=QUEUE, description="such as operations or compliance")],
    severity: Severity,
    subject: Annotated[str, Field(min_length=1, max_length=200, description="what it is about, on one line")],
    reason: Annotated[str, Field(min_length=1, max_length=2_000, description="why a person should look")],
    facts: Annotated[
        list[str], Field(max_length=MOST_EVIDENCE, description="ids of committed facts that it rests on")
    ] = [],  # noqa: B006 - never changed; a schema wants a plain default
) -> Item:
    """Ask people of a queue to look at something, with the facts of this run that it rests on. Nothing waits
    for them: review.read tells what they found. It approves no call."""
    tenant, run = context.tenant, context.run
    if tenant is None or run is None:
        raise build_tool_refusal("this tool is called for a run")

    def write() -> Item:
        row = review_asker()(
            tenant, run, key=context.key, queue=queue, severity=severity, subject=subject, reason=reason,
            facts=facts,
        )  # fmt: skip
        return _build_item(item_of(row.id))

    return await in_house(context, lambda: in_words(write))


def _build_item(found: ReviewState) -> Item:
    row = found.row
    return Item(
        id=str(row.id), sha256=row.sha256, queue=row.queue, severity=row.severity, state=found.state,
        finding=found.finding or "", note=found.note,
    )  # fmt: skip
