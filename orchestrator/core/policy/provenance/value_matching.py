"""Looking a value up in a text: strictly where it may then be trusted, else loosely (R-TOOL-16).

Strictly: whole words, or the same number, the same account, the same telephone number. Loosely: however it
is set out, encoded, turned round or put together from pieces. A value of nowhere and one of an untrusted
text are judged alike, so that what a loose look misses gains nothing.
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

# What joins two parts of one word: the 100 of A-100, of 3.100 or of 100@example.org is no word of its own.
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
    """A text that values are looked up in; what a look needs is made at the first one."""

    words: str

    @cached_property
    def normal(self) -> str:
        """Whole words are found here."""
        return normalize_text(self.words)

    @cached_property
    def bare(self) -> str:
        """Letters and digits alone, of the text and of what it says once it is decoded."""
        return " ".join(compute_skeleton(layer) for layer in decode_layers(self.words))

    @cached_property
    def blocks(self) -> frozenset[str]:
        """The bare text cut into pieces of one length: a long quotation holds at least one of them."""
        bare = self.bare
        return frozenset(bare[at : at + BLOCK] for at in range(0, len(bare) - BLOCK + 1, BLOCK))


def words_of(value: Any) -> str:
    """Every name and every value in a JSON value, a line each."""
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
    """Whether the text states exactly this: as whole words, or as the same number set out otherwise."""
    bare = normalize_text(value)
    if not bare or len(bare) > LONGEST_WORDS or has_hidden_characters(value):
        return False
    if bare in text.normal and re.search(BEFORE + re.escape(bare) + AFTER, text.normal):
        return True
    if amounts := amounts_of(value):
        # What can be read in two ways is only stated where both are.
        return all(_has_amount(f"{amount:f}", text) for amount in amounts)
    return _has_long_number(bare, text)


def _has_amount(amount: str, text: SearchableText) -> bool:
    """A number is found by its amount, whatever stands between its thousands."""
    sign, whole, part = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?", amount).groups()  # type: ignore[union-attr]
    first = len(whole) % 3 or 3
    groups = [whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))]
    spelt = "[,. \u2019']?".join(groups)
    after = rf"[.,]{part}0*" if part else r"(?:[.,]0{1,12})?"
    before = sign or r"(?<![-+])"
    return re.search(rf"{before}{BEFORE}{spelt}{after}{AFTER}(?![.,]\d)", text.normal) is not None


def _has_long_number(bare: str, text: SearchableText) -> bool:
    """A long number of an account or a telephone, with or without what sets it out."""
    signs = re.sub(r"[ \-./()+]", "", bare)
    digits = sum(sign.isdigit() for sign in signs)
    if not (signs.isalnum() and len(signs) <= 40 and digits >= 6 and digits * 2 >= len(signs)):
        return False
    return re.search(rf"{BEFORE}\+?{_SET_OUT.join(map(re.escape, signs))}{AFTER}", text.normal) is not None


def may_come_from_text(value: str, text: SearchableText) -> bool:
    """Whether the value may come from the text, whatever was done to it on the way."""
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
    """Whether it is put together from a few pieces that all stand in the text."""
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
    """The length of the longest beginning that the text holds."""
    low, high = 0, len(bare)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bare[:middle] in text else (low, middle - 1)
    return low


def _has_long_quote(bare: str, text: SearchableText) -> bool:
    """Whether a long value quotes the text at length."""
    blocks = text.blocks
    return any(bare[at : at + BLOCK] in blocks for at in range(len(bare) - BLOCK + 1))


def _has_same_date(value: str, text: SearchableText) -> bool:
    """A day is the same day however it is written."""
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
