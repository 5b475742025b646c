"""The ledger as people read it: entries of a tenant's day, or every entry of a run (R-BUDGET-3, R-UI-7).

Without a run those of the tenant's own lines are shown, which an index leads to; a run's are found by the
run. All inside the tenant's context.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Self
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, QuerySet

from budgets.core.amounts import ZERO
from budgets.core.dimension import Dimension
from budgets.core.entry import read_amounts
from budgets.core.posting import Cause
from budgets.models import Entry
from budgets.queries.tenant import Window

COLUMNS = (
    "id", "at", "cause", "run", "effect", "line", "dimension", "used", "reserved", "limit", "unknown",
    "price_version",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Which entries: of a day by its account, of a run, of a cause, of a dimension; `before` is the last one
    seen; one that is none is left out."""

    day: UUID | None = None
    run: UUID | None = None
    cause: str = ""
    dimension: str = ""
    before: UUID | None = None

    @property
    def any(self) -> bool:
        """Whether anything but a day is asked for."""
        return bool(self.run or self.cause or self.dimension)

    def query(self, **more: str) -> str:
        """As an address says it."""
        given = {"day": self.day, "run": self.run, "cause": self.cause, "dimension": self.dimension, **more}
        return urlencode({name: str(value) for name, value in given.items() if value})

    def after(self, entry: UUID) -> Self:
        """What follows that entry."""
        return replace(self, before=entry)

    @classmethod
    def of(
        cls, *, day: UUID | None, run: UUID | None, cause: str, dimension: str, before: UUID | None
    ) -> Self:
        """As asked for; a cause or dimension that is none is left out."""
        return cls(
            day=day,
            run=run,
            cause=cause if cause in set(Cause) else "",
            dimension=dimension if dimension in set(Dimension) else "",
            before=before,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one entry says of one dimension: deltas of what is used, reserved and allowed."""

    entry: UUID
    at: datetime
    cause: str
    run: UUID | None
    effect: str
    of_tenant: bool
    dimension: Dimension
    used: Decimal
    reserved: Decimal
    limit: Decimal
    unknown: bool
    price_version: str

    @property
    def cells(self) -> tuple[object, ...]:
        """As a line of a file, by COLUMNS."""
        return (
            self.entry, self.at.isoformat(), self.cause, self.run or "", self.effect,
            "tenant" if self.of_tenant else "run", self.dimension.value, Figure(self.used),
            Figure(self.reserved), Figure(self.limit), self.unknown, self.price_version,
        )  # fmt: skip


class Figure(Decimal):
    """A number as a file writes it: never with an exponent."""

    def __str__(self) -> str:
        return f"{self:f}"


def list_ledger_entries(sought: Sought, day: Window, most: int) -> Sequence[Entry]:
    """The newest entries sought, at most so many."""
    return list(_filter_entries(sought, day)[:most])


def iterate_row_chunks(sought: Sought, day: Window, size: int, most: int) -> Iterator[Sequence[Row]]:
    """The rows of entries, piece by piece; each piece is one look, so that no transaction lasts as long as a
    reader is slow. The caller brings the tenant's context to each step."""
    left = most
    while left > 0 and (found := list_ledger_entries(sought, day, min(size, left))):
        yield list(iterate_entry_rows(found, sought.dimension))
        sought, left = sought.after(found[-1].id), left - len(found)


def iterate_entry_rows(found: Sequence[Entry], dimension: str = "") -> Iterator[Row]:
    """Entries as rows, one a dimension; of one dimension alone."""
    for entry in found:
        used, reserved, limit = read_amounts(entry.amounts)
        for name in Dimension:
            if dimension and name != dimension:
                continue
            amounts = tuple(part.get(name) for part in (used, reserved, limit))
            if all(amount is None for amount in amounts):
                continue
            yield Row(
                entry=entry.id, at=entry.at, cause=entry.cause, run=entry.run_id,
                effect=entry.effect_id or "", of_tenant=entry.month_id is not None or entry.run_id is None,
                dimension=name, used=amounts[0] or ZERO, reserved=amounts[1] or ZERO,
                limit=amounts[2] or ZERO, unknown=entry.unknown, price_version=entry.price_version,
            )  # fmt: skip


def _filter_entries(sought: Sought, day: Window) -> "QuerySet[Entry]":
    if sought.run is not None:
        found = Entry.objects.filter(run_id=sought.run)
        if sought.day is not None:
            found = found.filter(at__gte=day.start, at__lt=day.end)
    else:
        found = Entry.objects.filter(account_id=day.account, month_id__isnull=False)
    if sought.cause:
        found = found.filter(cause=sought.cause)
    if sought.dimension:
        found = found.filter(amounts__contains=f'"{sought.dimension}"')
    if sought.before is not None and (last := Entry.objects.filter(id=sought.before).first()) is not None:
        found = found.filter(Q(at__lt=last.at) | Q(at=last.at, id__lt=last.id))
    # An id is made in a process, whose clock may be ahead; the time is the database's.
    return found.order_by("-at", "-id")
