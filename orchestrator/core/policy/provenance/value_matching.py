"""Search for a value in a text: strict if the value may then be trusted, else loose (R-TOOL-16).

A strict match is whole words, or the same number, account or telephone number. A loose match also finds a
value that is reformatted, encoded, reversed or assembled from pieces. A value without a source and a value
from an untrusted text are judged alike, so evading the loose match gains nothing.
"""

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from orchestrator.core.policy.provenance.normalization import (
    compute_skeleton,
    decode_layers,
    encode_rot13,
    has_hidden_characters,
    normalize_text,
)
from orchestrator.core.policy.provenance.value_kinds import amounts_of

# Characters that join parts of one word: the 100 in A-100, 3.100 or 100@example.org is not a separate word.
BEFORE, AFTER = r"(?<!\w)(?<!\w[-.@/:+])", r"(?!\w)(?![-.@/:+]\w)"
LONGEST_WORDS = 2_000
SHORTEST_LOOSE = 5
SHORTEST_TURNED = 8
LONGEST_PIECED = 256
SHORTEST_PIECE = 4
MOST_PIECES = 24
BLOCK = 16
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_SET_OUT = "[ \\-./()\u00a0\u2019\u202f]{0,2}"


@dataclass(frozen=True)
class SearchableText:
    """A text to search for values; the derived forms are computed on first use."""

    words: str

    @cached_property
    def normal(self) -> str:
        """The normalized text, in which whole words are searched."""
        return normalize_text(self.words)

    @cached_property
    def bare(self) -> str:
        """The letters and digits of the text and of its decoded layers."""
        return " ".join(compute_skeleton(layer) for layer in decode_layers(self.words))

    @cached_property
    def blocks(self) -> frozenset[str]:
        """The bare text cut into blocks of one length: a long quotation contains at least one of them."""
        bare = self.bare
        return frozenset(bare[at : at + BLOCK] for at in range(0, len(bare) - BLOCK + 1, BLOCK))


def words_of(value: Any) -> str:
    """Return every name and every value of a JSON value, one per line."""
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for key in reversed(item):
                stack.extend((item[key], key))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif item is not None and not isinstance(item, bool):
            found.append(str(item))
    return "\n".join(found)


def is_stated_in_text(value: str, text: SearchableText) -> bool:
    """Return whether the text states exactly this value, as whole words or as the same number.

    A number may be formatted differently.
    """
    bare = normalize_text(value)
    if not bare or len(bare) > LONGEST_WORDS or has_hidden_characters(value):
        return False
    if bare in text.normal and re.search(BEFORE + re.escape(bare) + AFTER, text.normal):
        return True
    if amounts := amounts_of(value):
        # An ambiguous number counts as stated only if the text states both readings.
        return all(_has_amount(f"{amount:f}", text) for amount in amounts)
    return _has_long_number(bare, text)


def _has_amount(amount: str, text: SearchableText) -> bool:
    """Return whether the text holds a number with this amount, whatever separates its thousands."""
    sign, whole, part = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?", amount).groups()  # type: ignore[union-attr]
    first = len(whole) % 3 or 3
    groups = [whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))]
    spelt = "[,. \u2019']?".join(groups)
    after = rf"[.,]{part}0*" if part else r"(?:[.,]0{1,12})?"
    before = sign or r"(?<![-+])"
    return re.search(rf"{before}{BEFORE}{spelt}{after}{AFTER}(?![.,]\d)", text.normal) is not None


def _has_long_number(bare: str, text: SearchableText) -> bool:
    """Return whether the text holds a long account or telephone number, with or without separators."""
    signs = re.sub(r"[ \-./()+]", "", bare)
    digits = sum(sign.isdigit() for sign in signs)
    if not (signs.isalnum() and len(signs) <= 40 and digits >= 6 and digits * 2 >= len(signs)):
        return False
    return re.search(rf"{BEFORE}\+?{_SET_OUT.join(map(re.escape, signs))}{AFTER}", text.normal) is not None


def may_come_from_text(value: str, text: SearchableText) -> bool:
    """Return whether the value may come from the text, even if it was transformed."""
    if is_stated_in_text(value, text) or _has_same_date(value, text):
        return True
    if any(_has_amount(f"{amount:f}", text) for amount in amounts_of(value)):
        return True
    for layer in decode_layers(value):
        bare = compute_skeleton(layer)
        if len(bare) < SHORTEST_LOOSE:
            continue
        if len(bare) > LONGEST_PIECED:
            if _has_long_quote(bare, text):
                return True
        elif _has_reversed_or_rotated(bare, text) or _is_pieced_together(bare, text):
            return True
    return False


def _has_reversed_or_rotated(bare: str, text: SearchableText) -> bool:
    if bare in text.bare:
        return True
    return len(bare) >= SHORTEST_TURNED and (bare[::-1] in text.bare or encode_rot13(bare) in text.bare)


def _is_pieced_together(bare: str, text: SearchableText) -> bool:
    """Return whether the value consists of a few pieces that all occur in the text."""
    if len(bare) < SHORTEST_TURNED:
        return False
    at = pieces = 0
    while at < len(bare):
        piece = _measure_longest_prefix(bare[at:], text.bare)
        pieces += 1
        rest = len(bare) - at
        if pieces > MOST_PIECES or piece < min(SHORTEST_PIECE, rest):
            return False
        at += piece
    return pieces <= max(2, len(bare) // SHORTEST_TURNED + 1)


def _measure_longest_prefix(bare: str, text: str) -> int:
    """Return the length of the longest prefix that the text contains."""
    low, high = 0, len(bare)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bare[:middle] in text else (low, middle - 1)
    return low


def _has_long_quote(bare: str, text: SearchableText) -> bool:
    """Return whether a long value contains a long quotation from the text."""
    blocks = text.blocks
    return any(bare[at : at + BLOCK] in blocks for at in range(len(bare) - BLOCK + 1))


def _has_same_date(value: str, text: SearchableText) -> bool:
    """Return whether the text holds the same date in any notation."""
    found = _ISO.search(value)
    if found is None:
        return False
    try:
        day = date(*map(int, found.groups()))
    except ValueError:
        return False
    month = _MONTHS[day.month - 1]
    named = rf"(?:{month}|{month[:3]}\.?)"
    sep = r"[./ -]{1,2}"
    forms = (
        rf"0?{day.day}(?:st|nd|rd|th)?\.? (?:of )?{named},? {day.year}",
        rf"{named} 0?{day.day}(?:st|nd|rd|th)?,? {day.year}",
        rf"0?{day.day}{sep}0?{day.month}{sep}{day.year}",
        rf"0?{day.month}{sep}0?{day.day}{sep}{day.year}",
        rf"{day.year}{sep}0?{day.month}{sep}0?{day.day}",
    )
    return re.search(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", text.normal) is not None
