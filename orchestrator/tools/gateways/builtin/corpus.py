"""corpus.search and corpus.read: the tenant's own documents, found by their words (R-TOOL-19, R-LOOP-33).

A passage is named by document, version and number; the version stays, so that what a fact cites can always be
shown. What a document says is data from outside, whoever has put it there.
"""

from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field

from orchestrator.core.common.visible_text import escape_invisible_characters
from orchestrator.core.domain.tool_spec import Verifier
from orchestrator.knowledge.queries.corpora import Hit, passage_of, search_corpus
from orchestrator.tools.gateways.egress.service_client import CallFailed, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool
from orchestrator.tools.gateways.tenant_services import in_house

Corpus = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$", description="which corpus")]
PassageId = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9](?:[a-z0-9._-]{0,118}[a-z0-9])?@[0-9]{1,6}#[0-9]{1,5}$",
        description="from a search: document@version#number",
    ),
]
DECLARED: Any = {"category": "retrieval", "external": False}


class Found(ToolResult):
    """A passage that was found. `start` and `end` are its place in the document, in characters; `score` is a
    decimal string."""

    id: str
    document: str
    version: int
    title: str
    heading: str
    snippet: str
    start: int
    end: int
    score: str


class FoundAll(ToolResult):
    corpus: str
    query: str
    passages: list[Found]


class Passage(ToolResult):
    """A passage with where it stands; `sha256` is of its text, `document_sha256` of its document's."""

    id: str
    corpus: str
    document: str
    version: int
    title: str
    heading: str
    text: str
    start: int
    end: int
    added: str
    sha256: str
    document_sha256: str


@read_only_tool(
    name="corpus.search",
    capability="corpus_search",
    facts={
        "query": "/query",
        "first": "/passages/0/id",
        "second": "/passages/1/id",
        "third": "/passages/2/id",
    },
    verifier=Verifier(
        name="asked", equal={"/result/query": "/arguments/query", "/result/corpus": "/arguments/corpus"}
    ),
    **DECLARED,
)
async def search_corpus_passages(
    context: ToolContext,
    corpus: Corpus,
    query: Annotated[str, Field(min_length=1, max_length=300, description='words; "a phrase"; -without')],
    limit: Annotated[int, Field(ge=1, le=20, description="at most so many passages")] = 5,
) -> FoundAll:
    """Search a corpus by words. Returns passages with their ids, best first."""
    hits = await in_house(context, lambda: search_corpus(corpus, query.replace("\x00", " "), limit))
    return FoundAll(corpus=corpus, query=query, passages=[_build_found_passage(hit) for hit in hits])


@read_only_tool(
    name="corpus.read",
    capability="corpus_read",
    facts={
        "passage": "/id",
        "document": "/document",
        "version": "/version",
        "added": "/added",
        "sha256": "/sha256",
    },
    verifier=Verifier(
        name="asked", equal={"/result/id": "/arguments/passage", "/result/corpus": "/arguments/corpus"}
    ),
    **DECLARED,
)
async def read_corpus_passage(context: ToolContext, corpus: Corpus, passage: PassageId) -> Passage:
    """Read one passage of a document by its id, with its place and its date."""
    name, _, rest = passage.rpartition("@")
    version, _, number = rest.partition("#")
    found = await in_house(context, lambda: passage_of(corpus, name, int(version), int(number)))
    if found is None:
        raise CallFailed("refused", sent=True, detail=f"{corpus} has no passage {passage}".encode())
    document = found.document
    return Passage(
        id=passage, corpus=corpus, document=name, version=document.version, title=document.title,
        heading=found.heading, text=found.text, start=found.start, end=found.end,
        added=document.at.strftime("%Y-%m-%dT%H:%M:%SZ"), sha256=sha256(found.text.encode()).hexdigest(),
        document_sha256=document.sha256,
    )  # fmt: skip


def _build_found_passage(hit: Hit) -> Found:
    return Found(
        id=f"{hit.name}@{hit.version}#{hit.number}",
        document=hit.name,
        version=hit.version,
        title=hit.title,
        heading=hit.heading,
        snippet=escape_invisible_characters(hit.snippet),
        start=hit.start,
        end=hit.end,
        score=hit.score,
    )
