"""GET /budgets/ledger and /budgets/ledger.csv: every entry, filtered and paginated.

Spec: R-UI-7, R-BUDGET-3.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from budgets.actions import ensure_tenant_windows
from budgets.core.dimension import Dimension
from budgets.core.posting import Cause
from budgets.queries.entries import (
    COLUMNS,
    EntryFilter,
    iterate_entry_rows,
    iterate_row_chunks,
    list_ledger_entries,
)
from budgets.queries.tenant import Window, list_day_windows
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import uuid_or_none
from tenancy.web.file_streaming import csv_file
from tenancy.web.page_auth import PageRequest, require_member

DAYS = 30
PAGE = 100
# An entry of a run has one row per dimension that it changed.
PAGE_OF_A_RUN = 30
PIECE = 1_000
MOST = 100_000


@require_safe
@require_member(Scope.READ)
def show_ledger_page(request: PageRequest) -> HttpResponse:
    """Show a page of the ledger: of a day of the tenant, or of a run with all its dimensions."""
    sought = sought_of(request)
    with tenant_transaction(request.member.tenant.id):
        known = _list_days(request.member.tenant.id)
        day = _choose_day(sought, known)
        size = PAGE_OF_A_RUN if sought.run and not sought.dimension else PAGE
        found = list_ledger_entries(sought, day, size + 1)
    following = ""
    if len(found) > size:
        following = f"{reverse('budgets-ledger')}?{sought.query(before=str(found[size - 1].id))}"
    context = {
        "day": day,
        "days": list(reversed(known)),
        "sought": sought,
        "causes": list(Cause),
        "dimensions": list(Dimension),
        "size": size,
        "rows": list(iterate_entry_rows(found[:size], sought.dimension)),
        "following": following,
        "file": f"{reverse('budgets-ledger-file')}?{sought.query()}",
    }
    return render(request, "budgets/ledger.html", context)


@require_safe
@require_member(Scope.READ)
def ledger_file(request: PageRequest) -> HttpResponseBase:
    """Stream the filtered ledger as CSV: a row per dimension of each entry, newest first.

    The file covers at most 100,000 entries.
    """
    sought, house = sought_of(request), request.member.tenant.id
    with tenant_transaction(house):
        day = _choose_day(sought, _list_days(house))
    name = f"ledger-{timezone.localtime(day.start):%Y-%m-%d}.csv"
    return csv_file(request, name, _stream_csv_rows(house, sought, day))


def sought_of(request: PageRequest) -> EntryFilter:
    """Parse the filter from the request's query string; invalid values are left out."""
    asked = request.GET
    return EntryFilter.of(
        day=uuid_or_none(asked.get("day", "")),
        run=uuid_or_none(asked.get("run", "").strip()),
        cause=asked.get("cause", ""),
        dimension=asked.get("dimension", ""),
        before=uuid_or_none(asked.get("before", "")),
    )


def _stream_csv_rows(house: UUID, sought: EntryFilter, day: Window) -> Iterator[Sequence[Any]]:
    """Yield the file's rows in chunks, each read in a transaction of its own."""
    yield [COLUMNS]
    reading = iterate_row_chunks(sought, day, PIECE, MOST)
    while True:
        with tenant_transaction(house):
            piece = next(reading, None)
        if piece is None:
            return
        yield [row.cells for row in piece]


def _list_days(house: UUID) -> list[Window]:
    at = database_now()
    ensure_tenant_windows(house, at)
    return list_day_windows(at, DAYS)


def _choose_day(sought: EntryFilter, known: list[Window]) -> Window:
    return next((day for day in known if day.account == sought.day), known[-1])
