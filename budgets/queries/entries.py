"""The ledger for display: entries of a tenant's day, or every entry of a run (R-BUDGET-3, R-UI-7).

Without a run, the entries of the tenant's own lines are listed by an index; a run's entries are found by
the run. All functions run in the tenant's context.
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
class EntryFilter:
    """A filter of entries by a day's account, a run, a cause or a dimension. Empty fields do not filter.

    `before` is the last entry already seen.
    """

    day: UUID | None = None
    run: UUID | None = None
    cause: str = ""
    dimension: str = ""
    before: UUID | None = None

    @property
    def any(self) -> bool:
        """Return whether the filter is narrower than a day."""
        return bool(self.run or self.cause or self.dimension)

    def query(self, **more: str) -> str:
        """Encode the filter as a query string."""
        given = {"day": self.day, "run": self.run, "cause": self.cause, "dimension": self.dimension, **more}
        return urlencode({name: str(value) for name, value in given.items() if value})

    def after(self, entry: UUID) -> Self:
        """Return the filter for the entries after that entry."""
        return replace(self, before=entry)

    @classmethod
    def of(
        cls, *, day: UUID | None, run: UUID | None, cause: str, dimension: str, before: UUID | None
    ) -> Self:
        """Build the filter; an unknown cause or dimension is left out."""
        return cls(
            day=day,
            run=run,
            cause=cause if cause in set(Cause) else "",
            dimension=dimension if dimension in set(Dimension) else "",
            before=before,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One dimension of one entry: deltas of used, reserved and limit."""

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
        """The values for a CSV row, in the order of COLUMNS."""
        return (
            self.entry, self.at.isoformat(), self.cause, self.run or "", self.effect,
            "tenant" if self.of_tenant else "run", self.dimension.value, Figure(self.used),
            Figure(self.reserved), Figure(self.limit), self.unknown, self.price_version,
        )  # fmt: skip


class Figure(Decimal):
    """A number that is never formatted with an exponent."""

    def __str__(self) -> str:
        return f"{self:f}"


def list_ledger_entries(sought: EntryFilter, day: Window, most: int) -> Sequence[Entry]:
    """List the newest matching entries, at most `most`."""
    return list(_filter_entries(sought, day)[:most])


def iterate_row_chunks(sought: EntryFilter, day: Window, size: int, most: int) -> Iterator[Sequence[Row]]:
    """Yield the rows of entries in chunks, each read by one query.

    No transaction then lasts as long as a slow reader. The caller provides the tenant's context for each
    step.
    """
    left = most
    while left > 0 and (found := list_ledger_entries(sought, day, min(size, left))):
        yield list(iterate_entry_rows(found, sought.dimension))
        sought, left = sought.after(found[-1].id), left - len(found)


def iterate_entry_rows(found: Sequence[Entry], dimension: str = "") -> Iterator[Row]:
    """Yield a row per dimension of each entry, or only the rows of one dimension."""
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


def _filter_entries(sought: EntryFilter, day: Window) -> "QuerySet[Entry]":
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
    # Ids are made in a process, whose clock may be ahead; `at` is the database's time.
    return found.order_by("-at", "-id")
