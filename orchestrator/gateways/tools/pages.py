"""A web page as its readers see it: text and links, without what the page hides (R-TOOL-19, M14).

Hidden is what attributes, inline styles and the page's own style sheet take from sight: not shown, of no
size, off the screen, see-through, or in the colour of its ground. What could hide more and cannot be judged
from the page alone is said beside the text (`unsure`): sheets in other files, which are not fetched, rules
that depend on a state or are not understood, and scripts. The text is untrusted either way.
"""

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urljoin, urlsplit

from pydantic import BaseModel, ConfigDict
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from orchestrator.core.plain_text import shown

MOST_TEXT = 600_000
MOST_LINKS = 200
MOST_NODES = 200_000
MOST_RULES = 400
MOST_SHEET = 200_000
MOST_STYLED = 40_000
DEEPEST = 400
LONGEST_LINK = 200
# Never text of the page.
_NEVER = "script, style, noscript, template, iframe, object, embed, svg, canvas, select, textarea, dialog"
_HIDDEN = "[hidden], input[type=hidden], details:not([open]) > :not(summary)"
_BLOCK_WORDS = """
address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_BLOCK_WORDS.split())
# No depth: what has no content, and what the next of its kind ends.
_UNCOUNTED_WORDS = """
area base br col embed hr img input link meta source track wbr p li dd dt td th tr option optgroup tbody thead
tfoot colgroup rp rt html head body path circle rect line use g stop
"""
_UNCOUNTED = frozenset(_UNCOUNTED_WORDS.split())
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
_RULE = re.compile(r"([^{}@;]{1,300})\{([^{}]{1,2000})\}")
_SPACE = re.compile(r"[ \t\f\v\u00a0]+")
_LINES = re.compile(r"\s*\n\s*")
_ZERO = r"[-+]?0*\.?0+(?:px|em|rem|pt|%|vh|vw)?"
_UNSEEN = re.compile(
    rf"display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|opacity:{_ZERO}(?:;|$)"
    rf"|font-size:(?:{_ZERO}|[01]px)(?:;|$)|(?:^|;)(?:max-)?(?:width|height):{_ZERO}(?:;|$)"
    rf"|(?:left|top|right|bottom|text-indent|margin-left|margin-top):-\d{{3,}}"
    rf"|clip:rect\(0|clip-path:inset\((?:100%|50%)|transform:scale\({_ZERO}|color:transparent"
    rf"|translate(?:x|y|3d)?\([^)]*-\d{{3,}}|filter:opacity\({_ZERO}|color:(?:rgb|hsl)a?\([^)]*[,/]{_ZERO}\)"
    r"|color:#(?:[0-9a-f]{3}0|[0-9a-f]{6}00)(?:;|$)"
)
_MOMENT = re.compile(r"::?(?:before|after|hover|focus|active|visited|selection|marker|placeholder|first-l)")
_IMPORT = re.compile(r"@import\b")
Unsure = Literal["style_files", "style_rules", "scripts"]
_COLOUR = re.compile(r"(?:^|;)color:([^;]+)")
_GROUND = re.compile(r"(?:^|;)background(?:-color)?:([^;]+)")
_NAMES = {"white": "#ffffff", "black": "#000000"}


class Link(BaseModel):
    """A link of a page, by the number that stands in the text."""

    model_config = ConfigDict(frozen=True)

    number: int
    text: str
    url: str


class PageRead(BaseModel):
    """A page, read. `hidden` counts characters that were left out; `cut` says that there was more. `unsure`:
    what may hide some of the text from its readers, and could not be read."""

    model_config = ConfigDict(frozen=True)

    title: str
    language: str
    text: str
    links: list[Link]
    hidden: int
    cut: bool
    unsure: list[Unsure]


def read_page(html: str, url: str) -> PageRead:
    """Read a page. Characters that do not show are written out; nothing in the text is markup any more."""
    within = _within_bounds(html)
    tree = LexborHTMLParser(within)
    found = tree.css_first("title")
    title = _line(found.text() if found is not None else "")[:300]
    base = tree.css_first("base[href]")
    here = urljoin(url, (base.attributes.get("href") or "") if base is not None else "")
    top = tree.css_first("html")
    language = (top.attributes.get("lang") or "")[:35] if top is not None else ""
    body = tree.body
    if body is None:
        return PageRead(title=title, language="", text="", links=[], hidden=0, cut=False, unsure=[])
    unsure = _unsure(tree)
    hidden, missed = _without_hidden(tree, body)
    if missed and "style_rules" not in unsure:
        unsure.append("style_rules")
    text, links, cut = _told(body, here)
    return PageRead(
        title=title, language=_line(language), text=text[:MOST_TEXT], links=links, hidden=hidden,
        cut=cut or len(text) > MOST_TEXT or len(within) < len(html), unsure=sorted(unsure),
    )  # fmt: skip


def _within_bounds(html: str) -> str:
    """The page up to where it is nested deeper, or has more elements, than a page for people.

    A parser looks through all open elements at many a tag: what opens without end would cost it minutes.
    """
    depth = 0
    for count, tag in enumerate(_TAG.finditer(html)):
        name = tag[2].lower()
        if name not in _UNCOUNTED:
            depth = depth - 1 if tag[1] else depth + 1
        if depth > DEEPEST or count > MOST_NODES:
            return html[: tag.start()]
    return html


def _unsure(tree: LexborHTMLParser) -> list[Unsure]:
    """What of the page may hide text and is not in the page, or runs in it."""
    found: list[Unsure] = []
    linked = [node for node in tree.css("link[rel]") if "stylesheet" in _rel(node)]
    if linked or any(_IMPORT.search(node.text().lower()) for node in tree.css("style")):
        found.append("style_files")
    if tree.css_first("script") is not None:
        found.append("scripts")
    return found


def _rel(node: LexborNode) -> list[str]:
    return (node.attributes.get("rel") or "").lower().split()


def _without_hidden(tree: LexborHTMLParser, body: LexborNode) -> tuple[int, bool]:
    """Take out what no reader sees; how many characters of text that was, and whether a rule that hides
    something was not understood."""
    rules, missed = _rules(tree)
    for node in body.css(_NEVER):
        node.decompose()
    styled = [
        (node, _plain(node.attributes.get("style"))) for node in body.css("[style]")
    ] + [
        (node, f"color:{_plain(node.attributes.get('color'))}") for node in body.css("font[color]")
    ]  # fmt: skip
    page = _ground(body, rules)
    known = {page, *(_colour(_GROUND, style) for _, style in (*rules, *styled))}
    for selector, style in rules:
        colour = _colour(_COLOUR, style)
        if colour and colour not in known and not (_UNSEEN.search(style) or _GROUND.search(style)):
            continue
        try:
            styled += [(node, style) for node in body.css(selector)]
        except (SelectolaxError, ValueError):
            missed = missed or bool(_UNSEEN.search(style))
        if len(styled) > MOST_STYLED:
            missed = True
            break
    grounds = _Grounds(page, styled)
    unseen = [node for node, style in styled if _UNSEEN.search(style) or grounds.swallow(node, style)]
    return sum(_taken(node) for node in _outermost([*body.css(_HIDDEN), *unseen], body)), missed


def _outermost(nodes: list[LexborNode], body: LexborNode) -> list[LexborNode]:
    """Each of them once, and none that goes with another one: what was taken out is gone with all it held."""
    wanted = {node.mem_id: node for node in nodes if node.mem_id != body.mem_id}
    within: dict[int, bool] = {}
    for node in wanted.values():
        way: list[int] = []
        above: LexborNode | None = node.parent
        while above is not None and above.mem_id not in wanted and above.mem_id not in within:
            way.append(above.mem_id)
            above = above.parent
        held = above is not None and (above.mem_id in wanted or within.get(above.mem_id, False))
        within |= dict.fromkeys(way, held)
        within[node.mem_id] = held
    return [node for name, node in wanted.items() if not within[name]]


class _Grounds:
    """What stands behind each element: its own background or an ancestor's, else the page's colour."""

    def __init__(self, page: str, styled: list[tuple[LexborNode, str]]) -> None:
        self._page = page
        self._own = {node.mem_id: _colour(_GROUND, style) for node, style in styled if _GROUND.search(style)}
        self._behind: dict[int, str] = {}

    def swallow(self, node: LexborNode, style: str) -> bool:
        """Whether a style writes in the very colour that stands behind."""
        colour = _colour(_COLOUR, style)
        return bool(colour) and colour == (_colour(_GROUND, style) or self._of(node))

    def _of(self, node: LexborNode) -> str:
        way: list[int] = []
        found = ""
        above: LexborNode | None = node
        while above is not None and not found:
            found = self._behind.get(above.mem_id) or self._own.get(above.mem_id, "")
            way.append(above.mem_id)
            above = above.parent
        self._behind |= dict.fromkeys(way, found or self._page)
        return found or self._page


def _ground(body: LexborNode, rules: list[tuple[str, str]]) -> str:
    """The colour behind the page: what its body says, then the last rule for it, else white."""
    found = _colour(_GROUND, _plain(body.attributes.get("style")))
    named = _shade(_plain(body.attributes.get("bgcolor")))
    ruled = [
        _colour(_GROUND, style) for selector, style in rules if selector.lower() in ("html", "body", ":root")
    ]
    return found or next((one for one in reversed(ruled) if one), "") or named or "#ffffff"


def _rules(tree: LexborHTMLParser) -> tuple[list[tuple[str, str]], bool]:
    """The selectors of the page's own style sheets with their plain styles, as far as they say something of
    sight or colour; and whether one that hides something is left out, for it depends on a state."""
    written = "\n".join(node.text() for node in tree.css("style"))
    sheet = re.sub(r"/\*.*?\*/", "", written[:MOST_SHEET], flags=re.S)
    told = [(match[1].strip(), _plain(match[2])) for match in _RULE.finditer(sheet)]
    found = [(selector, style) for selector, style in told if selector and _ruling(style)]
    # What CSS writes itself, or a pointer brings about, hides nothing that stands in the page.
    still = [(selector, style) for selector, style in found if not _MOMENT.search(selector)]
    plain = [(selector, style) for selector, style in still if ":" not in selector or selector == ":root"]
    missed = any(":" in selector and _UNSEEN.search(style) for selector, style in still)
    return plain[:MOST_RULES], missed or len(plain) > MOST_RULES or len(written) > MOST_SHEET


def _ruling(style: str) -> bool:
    """Whether a style says anything of sight."""
    return bool(_UNSEEN.search(style) or _COLOUR.search(style) or _GROUND.search(style))


def _taken(node: LexborNode) -> int:
    if node.parent is None:
        return 0
    size = len(_SPACE.sub(" ", node.text(deep=True)).strip())
    node.decompose()
    return size


def _plain(style: str | None) -> str:
    """A style without spaces, comments, case and emphasis."""
    text = re.sub(r"/\*.*?\*/", "", (style or "")[:4_000], flags=re.S)
    return "".join(text.lower().replace("!important", "").split())


def _colour(kind: re.Pattern[str], style: str) -> str:
    match = kind.search(style)
    if match is None:
        return ""
    return _shade(match[1])


def _shade(colour: str) -> str:
    """A colour in one spelling."""
    value = _NAMES.get(colour, colour)
    if re.fullmatch(r"#[0-9a-f]{3}", value):
        return "#" + "".join(digit * 2 for digit in value[1:])
    if numbers := re.fullmatch(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,1(?:\.0*)?)?\)", value):
        return "#" + "".join(f"{min(int(number), 255):02x}" for number in numbers.groups())
    return value


def _told(body: LexborNode, base: str) -> tuple[str, list[Link], bool]:
    """The text, its links numbered, and whether something was left out for its size."""
    parts: list[str] = []
    links: list[Link] = []
    seen = 0
    for step, (node, opening) in enumerate(_walk(body)):
        if step > MOST_NODES or seen > MOST_TEXT:
            return _tidy(parts), links, True
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
        elif tag == "img" and opening and (words := _line(node.attributes.get("alt"))):
            parts.append(f" [image: {words[:LONGEST_LINK]}] ")
        elif tag == "a" and not opening:
            parts.append(_linked(node, base, links))
    return _tidy(parts), links, False


def _walk(top: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every node in order, elements at their beginning (True) and at their end; no depth exhausts a stack."""
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


def _linked(node: LexborNode, base: str, links: list[Link]) -> str:
    written = (node.attributes.get("href") or "").strip()
    try:
        target = urljoin(base, written).partition("#")[0] if written else ""
        known = urlsplit(target).scheme in ("http", "https")
    except ValueError:
        return ""
    if not known or len(target) > 2_000 or len(links) >= MOST_LINKS:
        return ""
    words = _line(node.text(deep=True))[:LONGEST_LINK]
    links.append(Link(number=len(links) + 1, text=words, url=shown(target)))
    return f" [{len(links)}]"


def _tidy(parts: list[str]) -> str:
    text = _SPACE.sub(" ", "".join(parts))
    return shown(_LINES.sub("\n", text).strip())


def _line(text: str | None) -> str:
    return shown(" ".join((text or "").split()))
