"""Make invisible characters in text from outside visible (M14, A10, P5)."""

import unicodedata

# Variation selectors and fillers can carry hidden text.
_FILLERS = "\u115f\u1160\u3164\uffa0"
_CATEGORIES = ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp")


def does_not_show(char: str) -> bool:
    """Return whether a character is invisible: controls, directions, zero widths, fillers."""
    if char in "\n\t":
        return False
    if unicodedata.category(char) in _CATEGORIES:
        return True
    return 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF or char in _FILLERS


def escape_invisible_characters(text: str) -> str:
    """Return the text with every invisible character written out, such as ⟦U+202E⟧.

    Line ends become line feeds.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    if plain.isascii() and plain.replace("\n", "").replace("\t", "").isprintable():
        return plain
    return "".join(f"⟦U+{ord(char):04X}⟧" if does_not_show(char) else char for char in plain)
