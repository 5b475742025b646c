"""Text from outside, made safe to look at: what hides or rearranges letters is shown by its name.

Escaping is the template's work; this says what to show. Nothing is dropped: what is shortened is counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

ESC = "\x1b"
# Blanks that are no blanks to Unicode, and letters that look like nothing.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MOST_BLANKS = 8
MOST_LINES = 3
MOST_COMBINING = 3
PRETENDERS = frozenset(
    {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "MATHEMATICAL", "FULLWIDTH", "COPTIC", "LISU"}
)
NAMED = {ESC: "ESC", "\r": "CR", "\x00": "NUL", "\x07": "BEL", "\x08": "BS", "\x7f": "DEL"}
COMBINING = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
# Where nothing but these stands nothing hides, and there is nothing to look for: ASCII, Latin-1 without its
# odd blank and hyphen, and the dashes, quotes and arrows of our own sentences.
HARMLESS = "\n\t -~\u00a1-\u00ac\u00ae-\u00ff\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2192\u2212"
_MAY_HIDE = re.compile(rf"[^{HARMLESS}]|\n{{{MOST_LINES + 1},}}|[ \t]{{{MOST_BLANKS + 1},}}")
_PARTS = re.compile(rf"\n{{{MOST_LINES + 1},}}|[ \t]{{{MOST_BLANKS + 1},}}|[\w{COMBINING}]+|[^\w]", re.DOTALL)


class Piece(NamedTuple):
    """A stretch of text as it is, or (`mark`) the name of what stands there, with what it means."""

    text: str
    mark: bool = False
    title: str = ""


def mark_untrusted_text(text: str) -> list[Piece]:
    """The text as plain stretches and marks, in order; the same mark several times in a row is counted."""
    if _MAY_HIDE.search(text) is None:
        return [Piece(text)] if text else []
    found: list[Piece] = []
    for first, group in groupby(_iterate_pieces(text), key=lambda piece: piece if piece.mark else None):
        several = list(group)
        if first is None:
            found.append(Piece("".join(piece.text for piece in several)))
        else:
            times = f" ×{len(several)}" if len(several) > 1 else ""
            found.append(first._replace(text=first.text + times))
    return found


def _iterate_pieces(text: str) -> Iterator[Piece]:
    for match in _PARTS.finditer(text):
        part = match[0]
        if part.isascii() and part.isprintable() and len(part) <= MOST_BLANKS:
            yield Piece(part)
        elif part[0] == "\n" and len(part) > 1:
            yield Piece("\n\n")
            yield Piece(f"{len(part)} line breaks", mark=True, title="shortened")
            yield Piece("\n")
        elif part[0] in " \t" and len(part) > 1:
            yield Piece(f"{len(part)} blanks", mark=True, title="shortened")
        elif len(part) > 1 and part.isascii():
            yield Piece(part)
        elif len(part) > 1:
            yield from _mark_word(part)
        else:
            yield _mark_letter(part, text, match.start())


def _mark_letter(letter: str, text: str, at: int) -> Piece:
    if letter in "\n\t" or letter == "\ufe0f" or (letter == "\u200d" and _between_pictures(text, at)):
        return Piece(letter)
    kind = unicodedata.category(letter)
    if kind in HIDDEN or letter in INVISIBLE or (kind == "Zs" and letter != " "):
        return Piece(NAMED.get(letter, f"U+{ord(letter):04X}"), mark=True, title=_format_code_point(letter))
    return Piece(letter)


def _between_pictures(text: str, at: int) -> bool:
    around = text[max(0, at - 2) : at].rstrip("\ufe0f")[-1:], text[at + 1 : at + 2]
    return all(side and unicodedata.category(side) in {"So", "Sk"} for side in around)


def _mark_word(word: str) -> Iterator[Piece]:
    """Letters of another script inside a Latin word pretend to be Latin; more than a few accents on one
    letter cover what stands around it."""
    latin = any(letter.isascii() and letter.isalpha() for letter in word)
    stacked = 0
    for at, letter in enumerate(word):
        combining = unicodedata.category(letter) in {"Mn", "Me"}
        stacked = stacked + 1 if combining else 0
        if combining and stacked > MOST_COMBINING:
            yield Piece("accent", mark=True, title=_format_code_point(letter))
        elif latin and letter.isalpha() and not letter.isascii() and _is_lookalike(letter):
            yield Piece(letter)
            yield Piece(_name_script(letter).capitalize(), mark=True, title=_format_code_point(letter))
        else:
            yield _mark_letter(letter, word, at)


def _name_script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _is_lookalike(letter: str) -> bool:
    return _name_script(letter) in PRETENDERS


def _format_code_point(letter: str) -> str:
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'a control character').lower()}"
