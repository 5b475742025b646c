"""web.fetch and web.page: what stands at an address, as it is or as a reader would see it (R-TOOL-19).

On the tenant's web list they only read; anywhere else the very address is put before a person (R-TOOL-2).
"""

import asyncio
from typing import Annotated, Any

from pydantic import Field

from orchestrator.core.common.visible_text import escape_invisible_characters
from orchestrator.core.domain.tool_spec import Egress, Verifier
from orchestrator.tools.gateways.egress.html_text import Link, Unsure, read_page
from orchestrator.tools.gateways.egress.service_client import ToolContext
from orchestrator.tools.gateways.egress.web_fetch import read_web
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool

MOST_TEXT = 60_000
Address = Annotated[
    str,
    Field(
        min_length=8, max_length=2_000, pattern=r"^https?://[!-~]+$", description="http or https, without #"
    ),
]
Part = Annotated[int, Field(ge=1, le=100, description="which part of a long text, from 1")]
DECLARED: Any = {
    "category": "lookup",
    "rate_per_minute": 30,
    "timeout_ms": 20_000,
    "max_result_chars": 70_000,
    "egress": Egress(argument="/url"),
    "side_effects": "The address learns that it was asked, and everything that stands in it.",
    "effect_sentence": "Read {url}, which is not on the list of addresses that may be read freely",
    "blast_radius": "What stands in the address leaves the house; nothing is changed there by reading.",
    "queue": "operations",
    "verifier": Verifier(name="asked", equal={"/result/url": "/arguments/url"}),
}


class Fetched(ToolResult):
    """The text at an address. `found_at` is where it stood after redirects; `parts` how many parts of 60,000
    characters it has; `cut` that there was more than 2 MiB."""

    url: str
    found_at: str
    media_type: str
    charset: str
    sha256: str
    text: str
    part: int
    parts: int
    cut: bool


class WebPage(ToolResult):
    """A page as a reader sees it; `links` are numbered as in the text. `hidden` counts the characters that
    the page keeps from its readers and that were left out; `unsure` names what may hide more of the text and
    could not be read: style sheets in other files, rules of a kind that is not understood, scripts."""

    url: str
    found_at: str
    title: str
    language: str
    sha256: str
    text: str
    part: int
    parts: int
    links: list[Link]
    hidden: int
    unsure: list[Unsure]
    cut: bool


@read_only_tool(
    name="web.fetch", capability="web_fetch", facts={"url": "/url", "sha256": "/sha256"}, **DECLARED
)
async def fetch_web_address(context: ToolContext, url: Address, part: Part = 1) -> Fetched:
    """Read the text at a web address, as it is: JSON, XML, CSV, source. For a page to read use web.page."""
    found = await read_web(context, url)
    text, parts = select_text_part(escape_invisible_characters(found.text()), part)
    return Fetched(
        url=url, found_at=found.url, media_type=found.media_type, charset=found.charset,
        sha256=found.sha256, text=text, part=part, parts=parts, cut=found.cut,
    )  # fmt: skip


@read_only_tool(
    name="web.page", capability="web_page", facts={"url": "/url", "title": "/title", "sha256": "/sha256"},
    **DECLARED,
)  # fmt: skip
async def read_web_page(context: ToolContext, url: Address, part: Part = 1) -> WebPage:
    """Read a web page as text, with its links. What the page hides from its readers is left out; `unsure`
    says what might hide more, so that the text may hold what nobody sees."""
    found = await read_web(context, url)
    read = await asyncio.to_thread(read_page, found.text(), found.url)
    text, parts = select_text_part(read.text, part)
    return WebPage(
        url=url, found_at=found.url, title=read.title, language=read.language, sha256=found.sha256,
        text=text, part=part, parts=parts, links=read.links, hidden=read.hidden, unsure=read.unsure,
        cut=found.cut or read.cut,
    )  # fmt: skip


def select_text_part(text: str, part: int) -> tuple[str, int]:
    """One part of a text, and how many there are."""
    return text[(part - 1) * MOST_TEXT : part * MOST_TEXT], max(1, -(-len(text) // MOST_TEXT))
