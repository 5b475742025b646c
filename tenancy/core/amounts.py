"""Amounts of money as programs write them: decimal text or a whole number (R-BUDGET-1)."""

from typing import Any

DIGITS = 15
PLACES = 9
MOST = 10**DIGITS - 1


def amount_pattern(most: int = MOST, places: int = PLACES) -> str:
    """The pattern of decimal text up to `most`, which is a power of ten, or as large as any amount, with at
    most `places` decimals."""
    if most >= MOST:
        return rf"^[0-9]{{1,{DIGITS}}}(\.[0-9]{{1,{places}}})?$"
    zeros = len(str(most)) - 1
    below = rf"0{{0,{DIGITS - zeros}}}[0-9]{{1,{zeros}}}(\.[0-9]{{1,{places}}})?"
    return rf"^({below}|0{{0,{DIGITS - 1 - zeros}}}{most}(\.0{{1,{places}}})?)$"


def amount_schema(most: int = MOST, places: int = PLACES) -> dict[str, Any]:
    """The JSON Schema of an amount from 0 to `most`. A fraction is text: as a JSON number it is not exact."""
    return {
        "oneOf": [
            {"type": "string", "pattern": amount_pattern(most, places)},
            {"type": "integer", "minimum": 0, "maximum": most},
        ]
    }
