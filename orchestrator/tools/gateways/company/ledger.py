"""ledger.post: a ledger that honours no keys and cannot be asked afterwards. The hard case of R-TOOL-9."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from orchestrator.core.domain.tool_spec import QuorumStep, Reversibility, Risk, Verifier
from orchestrator.tools.gateways.company.orders import SERVICE
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, tool

Account = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Booked = Annotated[
    str, Field(pattern=r"^-?[0-9]{1,9}\.[0-9]{2}$", description="with two decimals, such as -129.90")
]


class Entry(ToolResult):
    id: str
    account: str
    amount: str
    memo: str


@tool(
    name="ledger.post",
    category="payment",
    capability="bookkeeping",
    risk=Risk.DESTRUCTIVE,
    reversibility=Reversibility.IRREVERSIBLE,
    service=SERVICE,
    external=True,
    max_retries=0,
    trust="trusted",
    sensitive=("/account", "/amount"),
    side_effects="An entry is added to the ledger.",
    effect_sentence="Post {amount} to {account}.",
    blast_radius="One ledger entry; it can only be balanced by another.",
    conflict_keys=("ledger:{account}",),
    amount="/amount",
    quorum=(QuorumStep(up_to=Decimal(200), approvers=1), QuorumStep(approvers=2)),
    queue="finance",
    facts={"entry_id": "/id", "account": "/account", "amount": "/amount"},
    verifier=Verifier(
        name="echo", equal={"/result/amount": "/arguments/amount", "/result/account": "/arguments/account"}
    ),
)
async def post_ledger_entry(
    context: ToolContext,
    account: Account,
    amount: Booked,
    memo: Annotated[str, Field(max_length=2_000)] = "",
) -> ServiceResponse[Entry]:
    """Post an entry to the ledger. Needs a person's approval; there is no way to ask later whether it was
    posted.
    """
    # The approved bytes are the service's own document (G2).
    return await context.post("/ledger/entries", context.arguments)
