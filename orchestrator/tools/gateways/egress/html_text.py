"""Extracts the text and the links of a web page (R-TOOL-19).

Elements that are never text (scripts, styles, form fields) are left out, and elements that the page marks as
hidden by an attribute or an inline style. Style sheets are not evaluated: text that only they hide is
returned. All text of a page is untrusted in any case.
"""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring
from pydantic import BaseModel, ConfigDict

from orchestrator.core.common.visible_text import escape_invisible_characters

MOST_TEXT = 600_000
MOST_LINKS = 200
MOST_NODES = 200_000
LONGEST_LINK = 200
_NO_TEXT_WORDS = """
head title script style noscript template iframe object embed svg canvas select textarea dialog video audio
datalist noframes noembed
"""
_NO_TEXT = frozenset(_NO_TEXT_WORDS.split())
_BLOCK_WORDS = """
address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
h6 header hr li main nav ol p pre section summary table tbody tfoot thead tr ul
"""
_BLOCKS = frozenset(_BLOCK_WORDS.split())
_MARKS: Final = {"li": "- ", "td": " | ", "th": " | "}
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.I)
# The parser stops at the end of the root element; browsers go on.
_END = re.compile(rb"</html\b", re.I)
_SPACE = re.compile(r"[ \t\f\v\u00a0]+")
_LINES = re.compile(r"\s*\n\s*")


class Link(BaseModel):
    """A link of a page, by its number in the text."""

    model_config = ConfigDict(frozen=True)

    number: int
    text: str
    url: str


class PageRead(BaseModel):
    """The text of a page.

    `hidden` counts the characters in elements that the page marks as hidden; `cut`: there was more.
    """

    model_config = ConfigDict(frozen=True)

    title: str = ""
    language: str = ""
    text: str = ""
    links: list[Link] = []
    hidden: int = 0
    cut: bool = False


def read_page(html: str, url: str) -> PageRead:
    """Read a page. Invisible characters are written out; the text contains no markup."""
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = document_fromstring(_END.sub(b"</body", html.encode("utf-8", "replace")), parser=parser)
    except etree.ParserError:  # there is no element and no text
        return PageRead()
    base = root.find(".//base[@href]")
    found = _PageText(base=urljoin(url, base.get("href", "") if base is not None else ""))
    found.add_element(root, in_pre=False)
    text = _normalize_text(found.parts)
    too_deep = any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log)
    return PageRead(
        title=_normalize_line(root.findtext(".//title"))[:300],
        language=_normalize_line(root.get("lang", "")[:35]),
        text=text[:MOST_TEXT],
        links=found.links,
        hidden=found.hidden,
        cut=found.cut or too_deep or len(text) > MOST_TEXT,
    )


@dataclass(slots=True)
class _PageText:
    """The parts of a page's text as they are read, and its links."""

    base: str
    parts: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    hidden: int = 0
    nodes: int = 0
    size: int = 0
    cut: bool = False

    def add_element(self, element: HtmlElement, *, in_pre: bool) -> None:
        """Add the text of an element, without the text behind it.

        It calls itself for each child: the parser accepts 256 levels.
        """
        tag = str(element.tag)
        self.nodes += 1
        if self.nodes > MOST_NODES or self.size > MOST_TEXT:
            self.cut = True
        elif _is_hidden(element):
            self.hidden += len(element.text_content().strip())
        elif tag not in _NO_TEXT:
            self._add_content(element, tag, in_pre=in_pre or tag == "pre")

    def _add_content(self, element: HtmlElement, tag: str, *, in_pre: bool) -> None:
        line = "\n" if tag in _BLOCKS else ""
        self.parts.append(line + _MARKS.get(tag, ""))
        begin = len(self.parts)
        if tag == "img" and (words := _normalize_line(element.get("alt"))):
            self.parts.append(f" [image: {words[:LONGEST_LINK]}] ")
        self._add_text(element.text, in_pre=in_pre)
        for child in element:
            self.add_element(child, in_pre=in_pre)
            self._add_text(child.tail, in_pre=in_pre)
        self.parts.append(self._add_link(element, begin) if tag == "a" else line)

    def _add_text(self, text: str | None, *, in_pre: bool) -> None:
        if text:
            self.size += len(text)
            self.parts.append(text if in_pre else text.replace("\n", " "))

    def _add_link(self, element: HtmlElement, begin: int) -> str:
        """Keep a link whose text begins at a part, and return its mark; "" for a link outside the web."""
        if len(self.links) >= MOST_LINKS:
            return ""
        written = element.get("href", "").strip()
        try:
            target = urljoin(self.base, written).partition("#")[0] if written else ""
            known = urlsplit(target).scheme in ("http", "https")
        except ValueError:
            return ""
        if not known or len(target) > 2_000:
            return ""
        words = _normalize_line("".join(self.parts[begin:]))[:LONGEST_LINK]
        number = len(self.links) + 1
        self.links.append(Link(number=number, text=words, url=escape_invisible_characters(target)))
        return f" [{number}]"


def _is_hidden(element: HtmlElement) -> bool:
    """Return whether an attribute or an inline style of an element hides it."""
    marks = element.attrib
    return "hidden" in marks or "popover" in marks or bool(_HIDDEN_STYLE.search(marks.get("style", "")))


def _normalize_text(parts: list[str]) -> str:
    text = _SPACE.sub(" ", "".join(parts))
    return escape_invisible_characters(_LINES.sub("\n", text).strip())


def _normalize_line(text: str | None) -> str:
    return escape_invisible_characters(" ".join((text or "").split()))
