"""Verification of the ledger: entries intact, lines equal to their sums, reservations ended.

The check works bottom-up: an entry against its digest, effects against their reservations, lines and
tranches against the entries. No number is trusted that another row could have been altered to match.

Spec: R-BUDGET-3.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q

from budgets.core.amounts import ZERO, Vector
from budgets.core.dimension import Dimension
from budgets.core.entry import COLUMNS, EntryRow, detect_altered_columns, read_amounts
from budgets.core.errors import BudgetError
from budgets.core.posting import COST, Cause
from budgets.models import Account, Entry, Line, Tranche
from traces.core.canonical import format_decimal
from traces.verification import VerificationFault, register_check

# Entries read at a time, since a tenant's ledger may not fit into memory.
AT_ONCE = 2_000
ENDS = (Cause.SETTLE.value, Cause.RELEASE.value)
Sums = dict[tuple[UUID, str], Decimal]


@dataclass(slots=True)
class Totals:
    """Sums of the entries: by account and dimension, and by tranche."""

    used: Sums = field(default_factory=lambda: defaultdict(Decimal))
    reserved: Sums = field(default_factory=lambda: defaultdict(Decimal))
    limit: Sums = field(default_factory=lambda: defaultdict(Decimal))
    held: dict[UUID, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    booked: dict[UUID, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    drawn: dict[UUID, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    spent: dict[UUID, Decimal] = field(default_factory=lambda: defaultdict(Decimal))


@dataclass(frozen=True, slots=True)
class ParsedEntry:
    """An entry with its parsed amounts."""

    entry: Entry
    used: Vector
    reserved: Vector
    limit: Vector


def verify_ledger(
    run_id: UUID | None = None, *, open_effects: Collection[str] | None = None
) -> list[VerificationFault]:
    """List every fault of a run's ledger, or of the whole tenant's; empty if there are none.

    Runs in the tenant's context. `open_effects` are the effects actually in flight; without them any
    unsettled reservation of an open account passes.
    """
    chosen = Entry.objects.order_by("id")
    entries = list(chosen if run_id is None else chosen.filter(run_id=run_id))
    faults = [fault for entry in entries for fault in _entry_faults(entry)]
    read = [found for entry in entries if (found := _parse_entry_amounts(entry)) is not None]
    totals = _sum_entries(read)
    accounts = Account.objects.all() if run_id is None else Account.objects.filter(id=run_id)
    closed = {account.id for account in accounts if account.closed_at is not None}
    faults += _effect_faults(read, closed, open_effects)
    mine = {account.id for account in accounts}
    if run_id is not None and not mine and entries:
        faults.append(_make_fault(f"account {run_id}", "id", "the account of these entries is gone"))
    faults += _line_faults(Line.objects.filter(account_id__in=mine).select_related("account"), mine, totals)
    tranches = Tranche.objects.filter(run_account_id__in=mine)
    return [*faults, *_tranche_faults(tranches, totals)]


def verify_windows() -> list[VerificationFault]:
    """List every fault of the tenant's days and months, in the tenant's context.

    Checks the entries that belong to no run, and the lines against the entries of all runs that drew on
    them.
    """
    of_windows = Q(month_id__isnull=False) | Q(run_id=None)
    entries = Entry.objects.filter(of_windows).order_by("id").iterator(chunk_size=AT_ONCE)
    faults: list[VerificationFault] = []
    totals = Totals()
    for entry in entries:
        if entry.run_id is None:
            faults += _entry_faults(entry)
        if (found := _parse_entry_amounts(entry)) is not None:
            _add_entry(totals, found)
    mine = set(Account.objects.exclude(kind=Account.Kind.RUN).values_list("id", flat=True))
    lines = Line.objects.filter(account_id__in=mine).select_related("account")
    return [*faults, *_line_faults(lines, mine, totals)]


def check_run(run_id: UUID) -> list[VerificationFault]:
    """Run the ledger check of `trace verify` for one run (R-TRACE-3)."""
    return verify_ledger(run_id)


def _entry_faults(entry: Entry) -> Iterator[VerificationFault]:
    row = EntryRow(**{name: getattr(entry, name) for name in COLUMNS})
    for column in detect_altered_columns(row, bytes(entry.digest).hex(), bytes(entry.marks)):
        yield _make_fault(f"entry {entry.id}", column, f"{column} is not what was written")


def _parse_entry_amounts(entry: Entry) -> ParsedEntry | None:
    """Parse the amounts of an entry; None if they are unreadable, which the digest check has reported."""
    try:
        return ParsedEntry(entry, *read_amounts(entry.amounts))
    except (orjson.JSONDecodeError, BudgetError, ArithmeticError, AttributeError, TypeError):
        return None


def _sum_entries(read: Iterable[ParsedEntry]) -> Totals:
    totals = Totals()
    for item in read:
        _add_entry(totals, item)
    return totals


def _add_entry(totals: Totals, item: ParsedEntry) -> None:
    entry = item.entry
    for account in (entry.account_id, entry.month_id):
        if account is not None:
            _add_amounts(totals.used, account, item.used)
            _add_amounts(totals.reserved, account, item.reserved)
            _add_amounts(totals.limit, account, item.limit)
    if entry.tranche_id is not None and entry.cause != Cause.CORRECTION:
        ahead = entry.month_id is not None
        (totals.held if ahead else totals.drawn)[entry.tranche_id] += item.reserved.amount(COST)
        (totals.booked if ahead else totals.spent)[entry.tranche_id] += item.used.amount(COST)


def _add_amounts(sums: Sums, account: UUID, amounts: Vector) -> None:
    for dimension in amounts:
        sums[account, dimension.value] += amounts[dimension]


def _effect_faults(
    read: Iterable[ParsedEntry], closed: Collection[UUID], open_effects: Collection[str] | None
) -> Iterator[VerificationFault]:
    effects: dict[str, list[ParsedEntry]] = defaultdict(list)
    for item in read:
        if item.entry.effect_id is not None and item.entry.cause != Cause.CORRECTION:
            effects[item.entry.effect_id].append(item)
    for effect, items in effects.items():
        yield from _one_effect(effect, items, closed, open_effects)


def _one_effect(
    effect: str, items: list[ParsedEntry], closed: Collection[UUID], open_effects: Collection[str] | None
) -> Iterator[VerificationFault]:
    causes = [item.entry.cause for item in items]
    where = f"effect {effect}"
    if causes.count(Cause.RESERVE) != 1:
        yield _make_fault(where, "cause", f"it was reserved {causes.count(Cause.RESERVE)} times")
    ends = sum(cause in ENDS for cause in causes)
    if ends > 1:
        yield _make_fault(where, "cause", f"it was settled {ends} times")
    if not ends:
        if items[0].entry.account_id in closed:
            yield _make_fault(where, "reserved", "its account is closed and its reservation is not settled")
        elif open_effects is not None and effect not in open_effects:
            yield _make_fault(where, "reserved", "it is not in flight and its reservation is not settled")
        return
    rest: dict[Dimension, Decimal] = defaultdict(Decimal)
    for item in items:
        for dimension in item.reserved:
            rest[dimension] += item.reserved[dimension]
    for dimension, amount in rest.items():
        if amount:
            yield _make_fault(
                where, dimension.value, f"{format_decimal(amount)} of its reservation was never given back"
            )


def _line_faults(
    lines: Iterable[Line], accounts: Collection[UUID], totals: Totals
) -> Iterator[VerificationFault]:
    seen: set[tuple[UUID, str]] = set()
    for line in lines:
        key = (line.account_id, line.dimension)
        seen.add(key)
        where = f"line {line.dimension} of {line.account_id}"
        yield from _compare_columns(
            where, {"used": (line.used, totals.used[key]), "reserved": (line.reserved, totals.reserved[key])}
        )
        # A window's limit follows the tenant's ceilings, whose versions are their own audited history.
        if line.account.kind == Account.Kind.RUN and (line.limit or ZERO) != totals.limit[key]:
            yield _make_fault(
                where, "limit", f"it is {line.limit}, its entries say {format_decimal(totals.limit[key])}"
            )
    for account, dimension in sorted(totals.used.keys() | totals.reserved.keys(), key=str):
        if account in accounts and (account, dimension) not in seen:
            yield _make_fault(f"line {dimension} of {account}", "id", "the line of these entries is gone")


def _tranche_faults(tranches: Iterable[Tranche], totals: Totals) -> Iterator[VerificationFault]:
    for tranche in tranches:
        yield from _compare_columns(
            f"tranche {tranche.id}",
            {
                "held": (tranche.held, totals.held[tranche.id]),
                "booked": (tranche.booked, totals.booked[tranche.id]),
                "reserved": (tranche.reserved, totals.drawn[tranche.id]),
                "used": (tranche.used, totals.spent[tranche.id] - totals.booked[tranche.id]),
            },
        )


def _compare_columns(
    where: str, columns: Mapping[str, tuple[Decimal, Decimal]]
) -> Iterator[VerificationFault]:
    for column, (stored, summed) in columns.items():
        if stored != summed:
            yield _make_fault(
                where,
                column,
                f"it is {format_decimal(stored)}, its entries add up to {format_decimal(summed)}",
            )


def _make_fault(where: str, column: str, sentence: str, **more: Any) -> VerificationFault:
    return VerificationFault(where=where, number=0, column=column, sentence=sentence, **more)


register_check("ledger", check_run)
