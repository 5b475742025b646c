"""Reads a web page as its readers see it: text and links, without hidden text (R-TOOL-19, M14).

Hidden is the text that attributes, inline styles and the page's own style sheet make invisible: not
displayed, of no size, off the screen, transparent, or in the colour of its background (css_cascade.py).
Causes that could hide more and cannot be judged from the page alone are listed in `unsure`: sheets in other
files, which are not fetched, styles that depend on a state or are not understood, and scripts. The text is
untrusted in any case.
"""

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urljoin, urlsplit

from pydantic import BaseModel, ConfigDict
from selectolax.lexbor import LexborHTMLParser, LexborNode

from orchestrator.core.common.visible_text import escape_invisible_characters
from orchestrator.tools.gateways.egress.css_cascade import take_hidden

MOST_TEXT = 600_000
MOST_LINKS = 200
MOST_NODES = 200_000
DEEPEST = 400
LONGEST_LINK = 200
# Elements that are never text of the page.
_NEVER = "script, style, noscript, template, iframe, object, embed, svg, canvas, select, textarea, "
_NEVER += "dialog, video, audio, datalist, noframes, noembed"
_HIDDEN = "[hidden], [popover], input[type=hidden], details:not([open]) > :not(summary)"
_BLOCK_WORDS = """
address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_BLOCK_WORDS.split())
# Elements without depth: those without content, and those that the next of their kind closes.
_UNCOUNTED_WORDS = """
area base br col embed hr img input link meta source track wbr p li dd dt td th tr option optgroup tbody thead
tfoot colgroup rp rt html head body path circle rect line use g stop
"""
_UNCOUNTED = frozenset(_UNCOUNTED_WORDS.split())
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
_SPACE = re.compile(r"[ \t\f\v\u00a0]+")
_LINES = re.compile(r"\s*\n\s*")
_IMPORT = re.compile(r"@import\b")
Unsure = Literal["style_files", "style_rules", "scripts"]
_EVENT = re.compile(r"[\s\"'/]on[a-z]+\s*=", re.I)


class Link(BaseModel):
    """A link of a page, by its number in the text."""

    model_config = ConfigDict(frozen=True)

    number: int
    text: str
    url: str


class PageRead(BaseModel):
    """The text of a page.

    `hidden` counts characters that were left out; `cut`: there was more. `unsure` lists causes that may
    hide some of the text from readers and could not be judged.
    """

    model_config = ConfigDict(frozen=True)

    title: str
    language: str
    text: str
    links: list[Link]
    hidden: int
    cut: bool
    unsure: list[Unsure]


def read_page(html: str, url: str) -> PageRead:
    """Read a page. Invisible characters are written out; the text contains no markup."""
    within = _within_bounds(html)
    tree = LexborHTMLParser(within)
    found = tree.css_first("title")
    title = _normalize_line(found.text() if found is not None else "")[:300]
    base = tree.css_first("base[href]")
    here = urljoin(url, (base.attributes.get("href") or "") if base is not None else "")
    top = tree.css_first("html")
    language = (top.attributes.get("lang") or "")[:35] if top is not None else ""
    body = tree.body
    if body is None:
        return PageRead(title=title, language="", text="", links=[], hidden=0, cut=False, unsure=[])
    unsure = _list_unsure_causes(tree, within)
    for node in body.css(_NEVER):
        node.decompose()
    hidden, missed = take_hidden(tree, body, _HIDDEN)
    if missed and "style_rules" not in unsure:
        unsure.append("style_rules")
    text, links, cut = _extract_text(body, here)
    return PageRead(
        title=title, language=_normalize_line(language), text=text[:MOST_TEXT], links=links, hidden=hidden,
        cut=cut or len(text) > MOST_TEXT or len(within) < len(html), unsure=sorted(unsure),
    )  # fmt: skip


def _within_bounds(html: str) -> str:
    """Return the page up to where its depth or its number of elements exceeds the limits.

    A parser looks through all open elements at many tags: a page with elements that are opened without end
    would take minutes.
    """
    depth = 0
    for count, tag in enumerate(_TAG.finditer(html)):
        name = tag[2].lower()
        if name not in _UNCOUNTED:
            depth = depth - 1 if tag[1] else depth + 1
        if depth > DEEPEST or count > MOST_NODES:
            return html[: tag.start()]
    return html


def _list_unsure_causes(tree: LexborHTMLParser, html: str) -> list[Unsure]:
    """Return the causes that may hide text and are outside of the page, or run in it."""
    found: list[Unsure] = []
    linked = [node for node in tree.css("link[rel]") if "stylesheet" in _parse_rel(node)]
    if linked or any(_IMPORT.search(node.text().lower()) for node in tree.css("style")):
        found.append("style_files")
    acts = _EVENT.search(html) and any(
        name.startswith("on") for node in tree.css("*") for name in node.attributes
    )
    if acts or tree.css_first("script") is not None:
        found.append("scripts")
    return found


def _parse_rel(node: LexborNode) -> list[str]:
    return (node.attributes.get("rel") or "").lower().split()


def _extract_text(body: LexborNode, base: str) -> tuple[str, list[Link], bool]:
    """Return the text, its links by number, and whether something was left out for its size."""
    parts: list[str] = []
    links: list[Link] = []
    seen = 0
    for step, (node, opening) in enumerate(_walk_nodes(body)):
        if step > MOST_NODES or seen > MOST_TEXT:
            return _normalize_text(parts), links, True
        tag = node.tag or ""
        if node.is_text_node:
            if opening:
                text = node.text_content or ""
                seen += len(text)
                parts.append(text if _in_pre(node) else " ".join(text.split("\n")))
        elif tag in _BLOCKS:
            parts.append("\n")
            if opening and tag == "li":
                parts.append("- ")
            elif opening and tag in ("td", "th"):
                parts[-1] = " | "
        elif tag == "img" and opening and (words := _normalize_line(node.attributes.get("alt"))):
            parts.append(f" [image: {words[:LONGEST_LINK]}] ")
        elif tag == "a" and not opening:
            parts.append(_format_link(node, base, links))
    return _normalize_text(parts), links, False


def _walk_nodes(top: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield every node in order, elements at their start (True) and end, without recursion."""
    stack: list[tuple[LexborNode, bool]] = [(top, True)]
    while stack:
        node, opening = stack.pop()
        yield node, opening
        if opening and node.is_element_node:
            stack.append((node, False))
            stack.extend((child, True) for child in reversed(list(node.iter(include_text=True))))


def _in_pre(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag == "pre"


def _format_link(node: LexborNode, base: str, links: list[Link]) -> str:
    written = (node.attributes.get("href") or "").strip()
    try:
        target = urljoin(base, written).partition("#")[0] if written else ""
        known = urlsplit(target).scheme in ("http", "https")
    except ValueError:
        return ""
    if not known or len(target) > 2_000 or len(links) >= MOST_LINKS:
        return ""
    words = _normalize_line(node.text(deep=True))[:LONGEST_LINK]
    links.append(Link(number=len(links) + 1, text=words, url=escape_invisible_characters(target)))
    return f" [{len(links)}]"


def _normalize_text(parts: list[str]) -> str:
    text = _SPACE.sub(" ", "".join(parts))
    return escape_invisible_characters(_LINES.sub("\n", text).strip())


def _normalize_line(text: str | None) -> str:
    return escape_invisible_characters(" ".join((text or "").split()))
