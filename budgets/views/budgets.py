"""GET and POST /budgets, GET /budgets/ledger.csv: what is spent, what may be, and every entry (R-UI-7)."""

import csv
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from budgets.actions import change_ceilings, ensure_tenant_windows, newest_ceilings
from budgets.core.ceilings import Ceilings
from budgets.core.posting import Cause
from budgets.queries.tenant import (
    DayEntry,
    Window,
    ceiling_versions,
    day_entries,
    days,
    largest_runs,
    shown,
    windows_now,
)
from tenancy.clock import database_now
from tenancy.context import raw_cursor, tenant
from tenancy.core.errors import Stale
from tenancy.core.roles import Scope
from tenancy.directory import names_of
from tenancy.doors import uuid_or_none
from tenancy.pages import PageRequest, page, require

DAYS = 30
PAGE = 100
MOST = 50_000
SOFT = Decimal("0.8")
WORDS = {"tenant_day": "Today", "tenant_month": "This month"}


class CeilingsForm(forms.Form):
    """The three ceilings; an empty field is none."""

    per_run_usd = forms.DecimalField(label="For a run, US$")
    daily_usd = forms.DecimalField(label="For a day, US$")
    monthly_usd = forms.DecimalField(label="For a month, US$")
    reason = forms.CharField(
        label="Reason", max_length=500, help_text="Stands in the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    tag = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for name in ("per_run_usd", "daily_usd", "monthly_usd"):
            self.fields[name] = forms.DecimalField(
                label=self.fields[name].label, required=False, min_value=0, max_digits=15, decimal_places=6,
                widget=forms.TextInput(attrs={"inputmode": "decimal"}), help_text="Empty: no ceiling.",
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Which entries: of a day by its account, of a cause, of a run."""

    day: UUID | None
    cause: str
    run: UUID | None
    before: UUID | None

    @classmethod
    def of(cls, request: PageRequest) -> "Sought":
        """As the address says; what it says wrongly is left out."""
        cause = request.GET.get("cause", "")
        return cls(
            day=uuid_or_none(request.GET.get("day", "")),
            cause=cause if cause in set(Cause) else "",
            run=uuid_or_none(request.GET.get("run", "").strip()),
            before=uuid_or_none(request.GET.get("before", "")),
        )

    def query(self, **more: str) -> str:
        """As an address says it."""
        given = {"day": self.day, "cause": self.cause, "run": self.run, **more}
        return urlencode({name: str(value) for name, value in given.items() if value})


@require_http_methods(["GET", "HEAD", "POST"])
@page(Scope.READ)
def budgets(request: PageRequest) -> HttpResponse:
    """The tenant's day and month, its ceilings and its ledger. A POST sets the ceilings."""
    if request.method == "POST":
        require(request.member, Scope.ADMIN)
        return _set(request)
    return _shown(request)


@require_safe
@page(Scope.READ)
def ledger_file(request: PageRequest) -> HttpResponse:
    """The entries of a day as CSV, newest first; at most 50,000."""
    sought = Sought.of(request)
    with tenant(request.member.tenant.id):
        at = database_now()
        ensure_tenant_windows(request.member.tenant.id, at)
        day = _day(sought, days(at, DAYS))
        answer = HttpResponse(content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = (
            f'attachment; filename="ledger-{timezone.localtime(day.start):%Y-%m-%d}.csv"'
        )
        lines = csv.writer(answer)
        lines.writerow(
            ("id", "at", "cause", "run", "effect", "spent_usd", "reserved_usd", "limit_usd", "unknown")
        )
        found = day_entries(day.account, cause=sought.cause, run=sought.run)[:MOST]
        for entry in shown(found):
            lines.writerow(
                (entry.id, entry.at.isoformat(), entry.cause, entry.run or "", entry.effect,
                 f"{entry.spent:f}", f"{entry.held:f}", f"{entry.limit:f}", entry.unknown)
            )  # fmt: skip
    return answer


def _set(request: PageRequest) -> HttpResponse:
    house, form = request.member.tenant.id, CeilingsForm(request.POST)
    if not form.is_valid():
        return _shown(request, form=form, status=422)
    given = form.cleaned_data
    with tenant(house):
        tranche = newest_ceilings(house, raw_cursor()).tranche_usd
    wanted = Ceilings(
        per_run_usd=given["per_run_usd"], daily_usd=given["daily_usd"], monthly_usd=given["monthly_usd"],
        tranche_usd=tranche,
    )  # fmt: skip
    try:
        change_ceilings(
            house, wanted, by=request.member.principal, reason=given["reason"], expected=given["tag"]
        )
    except Stale:
        form.add_error(None, "Somebody set the ceilings in the meantime. Below is your form; look again.")
        return _shown(request, form=form, status=412)
    messages.success(request, "The ceilings hold from the next reservation on.")
    return redirect("budgets")


def _day(sought: Sought, known: list[Window]) -> Window:
    return next((day for day in known if day.account == sought.day), known[-1])


def _shown(request: PageRequest, *, form: CeilingsForm | None = None, status: int = 200) -> HttpResponse:
    house, sought = request.member.tenant.id, Sought.of(request)
    with tenant(house):
        at = database_now()
        ensure_tenant_windows(house, at)
        ceilings, windows, known = newest_ceilings(house, raw_cursor()), windows_now(at), days(at, DAYS)
        day = _day(sought, known)
        found = day_entries(day.account, cause=sought.cause, run=sought.run)
        if sought.before is not None:
            found = found.filter(id__lt=sought.before)
        entries = list(shown(found[: PAGE + 1]))
        versions = ceiling_versions()
        if form is not None and "tag" in form.data:
            again = request.POST.copy()
            again["tag"] = ceilings.tag
            form.data = again
        context = {
            "windows": [_window(windows[kind], at) for kind in WORDS],
            "ceilings": ceilings,
            "form": form or _form(ceilings),
            "bars": [
                (f"{timezone.localtime(one.start):%d %b}", one.spent, _money(one.spent)) for one in known
            ],
            "largest": largest_runs(windows["tenant_day"].start),
            "versions": versions,
            "names": names_of(version.set_by for version in versions),
            "day": day,
            "days": list(reversed(known)),
            "sought": sought,
            "causes": list(Cause),
            "entries": entries[:PAGE],
            "following": _following(sought, entries),
            "file": f"{reverse('budgets-ledger')}?{sought.query()}",
            "may_admin": request.member.may(Scope.ADMIN),
        }
        return render(request, "budgets/budgets.html", context, status=status)


def _form(ceilings: Ceilings) -> CeilingsForm:
    amounts = ("per_run_usd", "daily_usd", "monthly_usd")
    given = {
        name: None if (amount := getattr(ceilings, name)) is None else f"{amount.normalize():f}"
        for name in amounts
    }
    return CeilingsForm(initial={**given, "tag": ceilings.tag})


def _window(window: Window, at: datetime) -> dict[str, Any]:
    soft = None if window.limit is None else window.limit * SOFT
    return {"word": WORDS[window.kind], "window": window, "soft": soft, "outlook": window.outlook(at)}


def _following(sought: Sought, entries: list[DayEntry]) -> str:
    if len(entries) <= PAGE:
        return ""
    return f"{reverse('budgets')}?{sought.query(before=str(entries[PAGE - 1].id))}#ledger"


def _money(amount: Decimal) -> str:
    return f"${amount:.4f}" if 0 < amount < Decimal("0.1") else f"${amount:,.2f}"
