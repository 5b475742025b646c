"""Applies a page's styles to find the text that they hide, element by element (R-TOOL-19, M14).

The page's own sheets and inline styles are cascaded as in a browser: important, inline, more specific or
later declarations win. A winning declaration that is understood decides. One that is not understood, or
holds only under a condition, leaves the text in place and is reported.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from orchestrator.tools.gateways.egress.css_visibility import (
    Colour,
    CssDeclaration,
    Sight,
    colour_of,
    ground_of,
    is_similar_colour,
    parse_declarations,
    sight_of_all,
)

MOST_RULES = 400
DEEPEST = 16
MOST_SHEET = 200_000
MOST_STYLED = 40_000
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
_TOKEN = re.compile(r"""[{};]|"[^"\n]*"|'[^'\n]*'|url\([^)]{0,1000}\)|[^{};"'u]+|.""", re.S | re.I)
_MOMENT = re.compile(r"::?(?:before|after|hover|focus|active|visited|selection|marker|placeholder)")
_ALWAYS = re.compile(r"@media(?: only)?(?: (?:screen|all))?")
_NEVER = re.compile(r"@(?:media (?:print|speech)|font-face|page|counter-style|property|charset|font-feature)")
_PAGE = ("html", "body", ":root")
_SPACE = re.compile(r"[ \t\f\v\u00a0]+")

Rank = tuple[bool, bool, tuple[int, int, int], int]
Shade = Colour | Literal["none", "unknown"]


class _TooDeep(Exception):
    """Blocks within blocks beyond what a page for people has."""


class _Rule(NamedTuple):
    """A rule of a sheet; `sure` is False for a rule under a condition that is not evaluated."""

    selector: str
    said: tuple[CssDeclaration, ...]
    sure: bool


class _StyledElement:
    """One element and its winning values."""

    def __init__(self, node: LexborNode) -> None:
        self.node = node
        self._won: dict[str, tuple[Rank, str]] = {}

    def put(
        self, said: Iterable[CssDeclaration], inline: bool, weight: tuple[int, int, int], number: int
    ) -> None:
        for name, value, important in said:
            rank = (important, inline, weight, number)
            if name not in self._won or self._won[name][0] <= rank:
                self._won[name] = (rank, value)

    @property
    def values(self) -> dict[str, str]:
        """The values by property."""
        return {name: value for name, (_, value) in self._won.items()}

    @property
    def colour(self) -> Shade | Literal["transparent"]:
        """The element's own text colour; none where it is inherited."""
        value = self.values.get("color", "inherit")
        return "none" if value in ("inherit", "unset", "currentcolor", "revert") else colour_of(value)

    @property
    def ground(self) -> Shade:
        """The element's own background; none where the background behind it shows."""
        both = [self._won[name] for name in ("background", "background-color") if name in self._won]
        image = self.values.get("background-image", "none")
        if image not in ("none", "initial", "inherit", "unset", "revert"):
            return "unknown"
        return ground_of(max(both)[1]) if both else "none"

    def sight(self) -> Sight:
        """Return the visibility of the element's text by its own values, colours aside."""
        return sight_of_all(frozenset(self.values.items()))


def take_hidden(tree: LexborHTMLParser, body: LexborNode, always: str) -> tuple[int, bool]:
    """Remove the invisible elements of a page, and those that `always` selects.

    Returns the number of removed characters of text, and whether something may hide more text than was
    understood.
    """
    rules, missed = _parse_rules(tree)
    held, cut = _apply_cascade(body, rules)
    missed = missed or cut or any(_may_hide_text(rule) for rule in rules if not _is_applicable_rule(rule))
    unseen: list[LexborNode] = []
    for one in held.values():
        sight = one.sight()
        if sight == "hidden" and one.node.mem_id != body.mem_id:
            unseen.append(one.node)
        elif sight != "seen" and not missed:
            missed = bool(one.node.text(deep=True).strip())
    taken = sum(_remove_node(node) for node in _select_outermost([*body.css(always), *unseen], body))
    for node in body.css("details:not([open])"):
        loose = [child for child in node.iter(include_text=True) if child.is_text_node]
        taken += sum(_remove_node(child) for child in loose)
    swallowed, unknown = _find_unreadable_texts(body, held)
    return taken + sum(_remove_node(node) for node in swallowed), missed or unknown


def _apply_cascade(body: LexborNode, rules: list[_Rule]) -> tuple[dict[int, _StyledElement], bool]:
    """Return the styled elements, and whether something was left out."""
    held: dict[int, _StyledElement] = {body.mem_id: _StyledElement(body)}
    missed, count = False, 0
    for words, name in (("font[color]", "color"), ("[bgcolor]", "background"), ("body[text]", "color")):
        attribute = words.partition("[")[2].rstrip("]")
        for node in _with_self(body, words):
            said = CssDeclaration(name, (node.attributes.get(attribute) or "").strip().lower(), False)
            held.setdefault(node.mem_id, _StyledElement(node)).put([said], False, (-1, 0, 0), 0)
    for number, rule in enumerate(rules):
        for part in _split_selector(rule.selector) if _is_applicable_rule(rule) else ():
            found = _select_elements(body, part)
            missed = missed or (found is None and _may_hide_text(rule))
            count += len(found or ())
            if count > MOST_STYLED:
                return held, True
            for node in found or ():
                held.setdefault(node.mem_id, _StyledElement(node)).put(
                    rule.said, False, _compute_specificity(part), number
                )
    return held, _apply_inline_styles(body, held) or missed


def _select_elements(body: LexborNode, part: str) -> list[LexborNode] | None:
    """Return the elements that a selector matches; None where the selector is not understood."""
    try:
        return [body] if part.lower() in _PAGE else body.css(part)
    except (SelectolaxError, ValueError):
        return None


def _apply_inline_styles(body: LexborNode, held: dict[int, _StyledElement]) -> bool:
    """Apply the inline styles over the rules; return whether one of them could not be read."""
    missed = False
    for node in _with_self(body, "[style]"):
        said = parse_declarations(node.attributes.get("style") or "")
        missed = missed or said is None
        held.setdefault(node.mem_id, _StyledElement(node)).put(said or (), True, (0, 0, 0), 0)
    return missed


def _with_self(body: LexborNode, words: str) -> list[LexborNode]:
    name = words.partition("[")[2].rstrip("]")
    own = [body] if name in body.attributes and words.partition("[")[0] in ("", "body") else []
    return [*own, *(node for node in body.css(words) if node.mem_id != body.mem_id)]


def _is_applicable_rule(rule: _Rule) -> bool:
    return rule.sure and (":" not in rule.selector or rule.selector.strip() == ":root")


def _may_hide_text(rule: _Rule) -> bool:
    """Return whether a rule that is not applied may hide text."""
    values = {one.name: one.value for one in rule.said}
    if sight_of_all(frozenset(values.items())) != "seen":
        return True
    colour = colour_of(values["color"]) if "color" in values else None
    return colour in ("unknown", "transparent") or (
        isinstance(colour, tuple) and is_similar_colour(colour, WHITE)
    )


def _parse_rules(tree: LexborHTMLParser) -> tuple[list[_Rule], bool]:
    """Return the rules of the page's own sheets, and whether some of them could not be read."""
    written = "\n".join(node.text() for node in tree.css("style"))
    sheet = re.sub(r"/\*.*?(?:\*/|$)", " ", written[:MOST_SHEET], flags=re.S)
    found: list[_Rule] = []
    missed = len(written) > MOST_SHEET
    try:
        blocks = list(_iter_blocks(sheet))
    except _TooDeep:
        return [], True
    for outer, selector, body in blocks:
        if any(_NEVER.match(one) for one in (*outer, selector.lower())):
            continue
        moment = _MOMENT.search(selector) and not re.search(r":(?:not|is|where|has)\(", selector)
        if selector.startswith("@") or moment:
            continue
        said = parse_declarations(body)
        if said is None or "\\" in selector:
            missed = True
            continue
        sure = all(_ALWAYS.fullmatch(one) for one in outer)
        found.append(_Rule(selector, said, sure))
    return found[:MOST_RULES], missed or len(found) > MOST_RULES


def _iter_blocks(sheet: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield each block with its enclosing blocks, outermost first; an unclosed block ends with the sheet."""
    frames: list[tuple[str, list[str]]] = []
    written = ""
    for piece in _TOKEN.findall(sheet):
        if piece == "{":
            if len(frames) >= DEEPEST:
                raise _TooDeep
            frames.append((" ".join(written.split()), []))
            written = ""
        elif piece in ";}":
            if frames:
                frames[-1][1].append(written)
            written = ""
            if piece == "}" and frames:
                selector, said = frames.pop()
                yield [one.lower() for one, _ in frames], selector, ";".join(said)
        else:
            written += piece
    while frames:
        selector, said = frames.pop()
        yield [one.lower() for one, _ in frames], selector, ";".join([*said, written])
        written = ""


def _split_selector(selector: str) -> list[str]:
    return [part.strip() for part in selector.split(",")] if "(" not in selector else [selector]


def _compute_specificity(selector: str) -> tuple[int, int, int]:
    """Return the specificity of a selector, as CSS counts it."""
    bare = re.sub(r"\[[^\]]*\]", "[", selector)
    types = len(re.findall(r"(?:^|[\s>+~])[a-zA-Z]", bare))
    return bare.count("#"), bare.count(".") + bare.count("[") + bare.count(":"), types


# -- colours


def _find_unreadable_texts(
    body: LexborNode, held: dict[int, _StyledElement]
) -> tuple[list[LexborNode], bool]:
    """Return the texts in the colour of their background, and whether a text could not be judged."""
    attached = {body.mem_id, *(node.mem_id for node in body.css("*"))}
    styled = {key: one for key, one in held.items() if key in attached}
    shades = {key: (one.colour, one.ground) for key, one in styled.items()}
    own = {key: styled[key] for key, both in shades.items() if both != ("none", "none")}
    found: list[LexborNode] = []
    unknown = False
    colours = _Nearest({key: shades[key][0] for key in own}, BLACK)
    grounds = _Nearest({key: shades[key][1] for key in own}, WHITE)
    for one in own.values():
        colour, ground = colours.of(one.node), grounds.of(one.node)
        known = isinstance(colour, tuple) and isinstance(ground, tuple)
        if colour == "transparent" or (known and is_similar_colour(colour, ground)):  # type: ignore[arg-type]
            found += _collect_texts(one.node, own)
        elif not known and not unknown:
            unknown = any((text.text_content or "").strip() for text in _collect_texts(one.node, own))
    return found, unknown


def _collect_texts(top: LexborNode, own: dict[int, _StyledElement]) -> list[LexborNode]:
    """Return the texts below an element, except those of elements with colours of their own."""
    found: list[LexborNode] = []
    stack = [top]
    while stack:
        for child in stack.pop().iter(include_text=True):
            if child.is_text_node:
                found.append(child)
            elif child.mem_id not in own:
                stack.append(child)
    return found


class _Nearest:
    """Resolves the value of an element: its own or the nearest ancestor's, else the page's."""

    def __init__(self, own: dict[int, str | Colour], page: Colour) -> None:
        self._own = {key: value for key, value in own.items() if value != "none"}
        self._page = page
        self._seen: dict[int, str | Colour] = {}

    def of(self, node: LexborNode) -> str | Colour:
        """Return the value of an element; each element is looked up once."""
        way: list[int] = []
        found: str | Colour | None = None
        above: LexborNode | None = node
        while above is not None and found is None:
            found = self._own.get(above.mem_id) or self._seen.get(above.mem_id)
            way.append(above.mem_id)
            above = above.parent
        self._seen |= dict.fromkeys(way, found or self._page)
        return found or self._page


# -- removal


def _select_outermost(nodes: list[LexborNode], body: LexborNode) -> list[LexborNode]:
    """Return each node once, without nodes inside another one: a removed node takes its content along."""
    wanted = {node.mem_id: node for node in nodes if node.mem_id != body.mem_id}
    within: dict[int, bool] = {}
    for node in wanted.values():
        way: list[int] = []
        above: LexborNode | None = node.parent
        while above is not None and above.mem_id not in wanted and above.mem_id not in within:
            way.append(above.mem_id)
            above = above.parent
        inside = above is not None and (above.mem_id in wanted or within.get(above.mem_id, False))
        within |= dict.fromkeys(way, inside)
        within[node.mem_id] = inside
    return [node for name, node in wanted.items() if not within[name]]


def _remove_node(node: LexborNode) -> int:
    if node.parent is None:
        return 0
    size = len(_SPACE.sub(" ", node.text(deep=True)).strip())
    node.decompose()
    return size
