"""Amounts: decimal strings outside, whole cents inside. There is no float anywhere."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

Currency = Literal["USD", "EUR"]
Positive = Annotated[str, Field(pattern=r"\A[0-9]{1,9}(\.[0-9]{1,2})?\z", description="such as 129.90")]
Signed = Annotated[str, Field(pattern=r"\A-?[0-9]{1,9}(\.[0-9]{1,2})?\z", description="such as -129.90")]


def parse_cents(amount: str) -> int:
    """`"129.9"` → 12990."""
    return int(Decimal(amount).scaleb(2))


def format_cents(amount: int) -> str:
    """12990 → `"129.90"`."""
    return str(Decimal(amount).scaleb(-2).quantize(Decimal("0.01")))
