"""The form that grants a run more budget, and the amounts entered in it (R-BUDGET-7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from approvals.core.packet import BudgetLine, BudgetPacket
from approvals.queries.request_detail import Card
from traces.core.canonical import format_decimal

PREFIX: Final = "g-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One limit with the field that raises it. `text` is the content of the field."""

    line: BudgetLine
    field: str
    text: str
    first: bool

    @property
    def label(self) -> str:
        """Return the dimension in words."""
        return self.line.dimension.replace("_", " ").replace("usd", "(US$)")

    @property
    def unit(self) -> str:
        """Return the unit as the pages write amounts."""
        return {"cost_usd": "usd", "wall_clock_seconds": "s"}.get(self.line.dimension, "")

    @property
    def whole(self) -> bool:
        """Return whether the dimension is counted in whole units."""
        return not self.unit

    @property
    def is_capped(self) -> bool:
        """Return whether one grant is capped at the amount that the boundary gave. Cost has ceilings of its
        own.
        """
        return self.line.dimension != "cost_usd"

    @property
    def short(self) -> Decimal | None:
        """Return how much the next effect lacks, 0 if enough is left, None if it needs none of this."""
        needed = self.line.needed
        return None if needed is None else max(needed - self.line.left, Decimal(0))


def build_extension_fields(card: Card, said: Mapping[str, Any] | None) -> tuple[Grant, ...]:
    """Build a field for every limit that can be raised, the limit that was reached first.

    The fields hold what the form sent, otherwise what is asked for. A limit of 0 forbids the dimension and is
    never raised (R-BUDGET-16).
    """
    packet = card.packet
    if not isinstance(packet, BudgetPacket):
        return ()
    found = [
        Grant(
            line=line, field=f"{PREFIX}{line.dimension}", text=_format_field_text(line, said),
            first=line.dimension == packet.refused,
        )
        for line in packet.budget
        if line.limit
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: not one.first))


def _format_field_text(line: BudgetLine, said: Mapping[str, Any] | None) -> str:
    given = said.get(f"{PREFIX}{line.dimension}") if said is not None else None
    if isinstance(given, str):
        return given[:40]
    return format_decimal(line.asked) if line.asked else ""


def amounts_said(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the amounts that a form gives. The verb validates them."""
    fields = ((name, value) for name, value in said.items() if name.startswith(PREFIX))
    return {
        name.removeprefix(PREFIX)[:40]: value.strip().replace(",", "")[:40]
        for name, value in fields
        if isinstance(value, str) and value.strip()
    }
