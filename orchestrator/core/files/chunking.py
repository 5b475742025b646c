"""Split a document into passages with their positions, so that a citation can be shown.

Spec: R-TOOL-19, R-LOOP-33.
"""

import re
from collections.abc import Iterator

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.visible_text import escape_invisible_characters

LONGEST = 1_500
LARGEST = 1_000_000
MOST = 4_000
LANGUAGES = (
    "simple", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
)  # fmt: skip
"""The languages whose words are searched by their stem; `simple` takes words as they are."""

_HEADING = re.compile(r"#{1,6} +(?P<marked>[^\n]{1,200})|(?P<plain>[^\n]{1,120})\n(?:={3,}|-{3,})(?=\n|\Z)")
_END = re.compile(r"[.!?…]['\")\]]*\s+|\n")


class PassagePart(FrozenModel):
    """A passage: `text` is the document's from `start` to `end`, under the heading that precedes it."""

    number: int
    start: int
    end: int
    heading: str
    text: str


def plain_document(text: str) -> str:
    """Return a document as it is stored: one kind of line end, no invisible characters."""
    return escape_invisible_characters(text).strip()


def passages_of(text: str) -> tuple[PassagePart, ...]:
    """Split a document into passages, in order.

    Short paragraphs are joined; long ones are cut at sentences. Every character except white space between
    passages is in one of them.
    """
    found: list[PassagePart] = []
    heading, start, end = "", 0, 0
    for begin, stop, over in _split_paragraphs(text):
        if end > start and (over is not None or stop - start > LONGEST):
            found.append(_build_passage_part(text, len(found), start, end, heading))
            start = begin
        elif end == start:
            start = begin
        heading = heading if over is None else over
        end = stop
    if end > start:
        found.append(_build_passage_part(text, len(found), start, end, heading))
    return tuple(found)


def _build_passage_part(text: str, count: int, start: int, end: int, heading: str) -> PassagePart:
    return PassagePart(number=count + 1, start=start, end=end, heading=heading, text=text[start:end])


def _split_paragraphs(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield paragraphs with their positions, none longer than a passage, and their headings, if any.

    The third member is the text of the heading if the paragraph begins with one, otherwise None.
    """
    for match in re.finditer(r"\S(?:.*?\S)??(?=\s*\n\s*\n|\s*\Z)", text, re.S):
        start, end = match.span()
        head = _HEADING.match(text, start, end)
        over = (head["marked"] or head["plain"]).strip(" #") if head is not None else None
        while end - start > LONGEST:
            cut = _find_cut_position(text, start)
            yield start, cut, over
            over = None
            start = cut
        if text[start:end].strip():
            yield start, end, over


def _find_cut_position(text: str, start: int) -> int:
    """Return where to cut a long paragraph: after the last sentence or word that fits, or anywhere."""
    window = text[start : start + LONGEST]
    ends = [match.end() for match in _END.finditer(window)]
    if ends and ends[-1] > LONGEST // 3:
        return start + ends[-1]
    space = window.rfind(" ")
    return start + (space + 1 if space > LONGEST // 3 else LONGEST)
