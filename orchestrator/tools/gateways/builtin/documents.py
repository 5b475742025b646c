"""documents.*: search the demo company's documents, and read a passage as evidence (R-LOOP-33, R-TOOL-19).

The archive ranks, and it shows only what its readers may see; both tools are read-only. What a document says
is data from outside: its trust is `untrusted`, whoever wrote it.
"""

from typing import Annotated

from pydantic import Field

from orchestrator.core.domain.tool_spec import Verifier
from orchestrator.tools.gateways.company.orders import SERVICE
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool

Query = Annotated[str, Field(min_length=1, max_length=300, description="the words to look for")]
PassageId = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,80}\.[0-9]{1,3}$", description="from a search")
]


class Hit(ToolResult):
    """`authority` ranks the source: 1 binds, 5 is hearsay. `score` is a decimal string."""

    id: str
    document: str
    title: str
    section: str
    kind: str
    dated: str
    authority: int
    snippet: str
    score: str


class Hits(ToolResult):
    query: str
    passages: list[Hit]


class Passage(ToolResult):
    """A passage with where it comes from: document, date, authority, audience and the digest of its text.

    A passage that states a rule or a figure for the record says `about` what it is and its `value`.
    """

    id: str
    document: str
    title: str
    section: str
    kind: str
    dated: str
    authority: int
    audience: str
    gist: str
    text: str
    about: str | None
    value: str | None
    sha256: str


@read_only_tool(
    name="documents.search",
    category="retrieval",
    capability="document_search",
    service=SERVICE,
    facts={
        "query": "/query",
        "first": "/passages/0/id",
        "second": "/passages/1/id",
        "third": "/passages/2/id",
        "fourth": "/passages/3/id",
        "fifth": "/passages/4/id",
    },
    verifier=Verifier(name="asked", equal={"/result/query": "/arguments/query"}),
)
async def search_documents(
    context: ToolContext,
    query: Query,
    limit: Annotated[int, Field(ge=1, le=20, description="at most so many passages")] = 5,
) -> ServiceResponse[Hits]:
    """Search the company's documents by words. Returns passages with their ids, best first."""
    return await context.get("/documents", query={"query": query, "limit": str(limit)})


@read_only_tool(
    name="documents.read",
    category="retrieval",
    capability="document_read",
    service=SERVICE,
    facts={
        "passage": "/id",
        "document": "/document",
        "dated": "/dated",
        "authority": "/authority",
        "gist": "/gist",
        "about": "/about",
        "value": "/value",
    },
    verifier=Verifier(name="asked", equal={"/result/id": "/arguments/passage"}),
)
async def read_document_passage(context: ToolContext, passage: PassageId) -> ServiceResponse[Passage]:
    """Read one passage of a document by its id, with its date and authority."""
    return await context.get("/documents/passages/{}", passage)
