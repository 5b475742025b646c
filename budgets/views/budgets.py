"""GET /budgets, POST /budgets/rates: the pages of spending, ceilings and rate limits.

Spec: R-UI-7, R-BUDGET-9, 10, 11, 14.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from budgets.actions import (
    change_rates,
    ensure_tenant_windows,
    newest_ceilings,
    newest_rates,
)
from budgets.core.amounts import ZERO
from budgets.core.ceilings import BOUNDS, Ceilings
from budgets.core.rates import NAMES, WHAT, Rates, format_limit_name
from budgets.queries.alerts import silent_webhooks, standing_alerts
from budgets.queries.expenses import Spending, daily_by_model, get_spending, of_month
from budgets.queries.tenant import (
    Window,
    ceiling_versions,
    largest_runs,
    list_day_windows,
    rate_versions,
    windows_now,
)
from budgets.views.bar_chart import HEIGHT, WIDTH, columns_of
from tenancy.core.errors import Stale
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.people.member_queries import names_of
from tenancy.web.page_auth import PageRequest, check_scopes, redirect_unless_post, require_member

DAYS = 30
SHARES = 12
SOFT = Decimal("0.8")
WORDS = {"tenant_day": "Today", "tenant_month": "This month"}
MEANWHILE = "Somebody set them in the meantime. Below is your form; look again."


class CeilingsForm(forms.Form):
    """The three ceilings: an amount each, or a checkbox for no ceiling.

    A field left empty by mistake removes no ceiling.
    """

    reason = forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    tag = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for name, what in BOUNDS.items():
            self.fields[name] = forms.DecimalField(
                label=f"For {what}, US$", required=False, min_value=0, max_digits=15, decimal_places=6,
                widget=forms.TextInput(attrs={"inputmode": "decimal"}),
            )  # fmt: skip
            self.fields[f"no_{name}"] = forms.BooleanField(label=f"No ceiling for {what}", required=False)

    def clean(self) -> dict[str, Any]:
        """Parse each ceiling as an amount or None; add an error if neither or both were given."""
        given = super().clean() or self.cleaned_data
        for name in BOUNDS:
            if name in self.errors or (given.get(name) is None) == given[f"no_{name}"]:
                continue
            asked_for = "Give an amount, or tick that there is no ceiling."
            self.add_error(
                name, asked_for if given.get(name) is None else "Empty this, or take the tick away."
            )
        return given

    @property
    def bounds(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """Each amount field with its checkbox for no ceiling."""
        return [(self[name], self[f"no_{name}"]) for name in BOUNDS]

    def collect_ceilings(self) -> dict[str, Decimal | None]:
        """Return the ceilings by name."""
        return {name: self.cleaned_data[name] for name in BOUNDS}


class RatesForm(forms.Form):
    """The six limits of admission; an empty field is no limit."""

    prefix = "rates"
    reason = forms.CharField(
        label="Reason", max_length=500, help_text="Saved to the audit log.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )  # fmt: skip
    tag = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for name in NAMES:
            self.fields[name] = forms.IntegerField(
                label=_capitalize_first(format_limit_name(name)),
                required=False,
                min_value=1,
                max_value=1_000_000,
                widget=forms.TextInput(attrs={"inputmode": "numeric"}),
                help_text="Empty: no limit.",
            )

    @property
    def limits(self) -> list[forms.BoundField]:
        """The fields of the limits, in order."""
        return [self[name] for name in NAMES]


@require_safe
@require_member(Scope.READ)
def show_budgets_page(request: PageRequest) -> HttpResponse:
    """Show the tenant's day and month, its spending, ceilings and rate limits."""
    return budgets_page(request)


@redirect_unless_post("budgets")
@require_member(Scope.READ)
def update_rates(request: PageRequest) -> HttpResponse:
    """Set the limits of admission."""
    check_scopes(request.member, Scope.ADMIN)
    form = RatesForm(request.POST)
    if not form.is_valid():
        return budgets_page(request, rates_form=form, status=422)
    given = form.cleaned_data
    try:
        change_rates(
            request.member.tenant.id, Rates(**{name: given[name] for name in NAMES}),
            by=request.member.principal, reason=given["reason"], expected=given["tag"],
        )  # fmt: skip
    except Stale:
        form.add_error(None, MEANWHILE)
        return budgets_page(request, rates_form=form, status=412)
    messages.success(request, "The limits hold from the next task on.")
    return redirect("budgets")


def budgets_page(
    request: PageRequest,
    *,
    form: CeilingsForm | None = None,
    rates_form: RatesForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page, with a refused form if there is one."""
    house = request.member.tenant
    with tenant_transaction(house.id):
        at = database_now()
        ensure_tenant_windows(house.id, at)
        windows = windows_now(at)
        ceilings, limits = newest_ceilings(house.id, raw_cursor()), newest_rates(house.id, raw_cursor())
        versions, rated = ceiling_versions(), rate_versions()
        context = {
            "alerts": standing_alerts(at),
            "silent": silent_webhooks() if request.member.may(Scope.ADMIN) else [],
            "windows": [_build_window_context(windows[kind], at) for kind in WORDS],
            "ceilings": ceilings,
            "form": _with_current_tag(form, ceilings.tag) or _ceilings_form(ceilings),
            "rates_form": _with_current_tag(rates_form, limits.tag) or _rates_form(limits),
            "limits": [
                (_capitalize_first(word), getattr(limits, name), getattr(limits, f"key_{name}"))
                for name, word in WHAT.items()
            ],
            **_last_days(list_day_windows(at, DAYS + 1), at, ZoneInfo(house.time_zone)),
            "by_model": _by_model(at, request),
            "largest": largest_runs(windows["tenant_day"].start),
            "versions": versions,
            "rated": rated,
            "names": names_of([*(one.set_by for one in versions), *(one.set_by for one in rated)]),
            "may_admin": request.member.may(Scope.ADMIN),
            **_build_spending_context(windows["tenant_month"], at, house.time_zone),
        }
        return render(request, "budgets/budgets.html", context, status=status)


def _build_spending_context(month: Window, at: datetime, zone: str) -> dict[str, Any]:
    """Build the month's spending: bars by workflow, model and tool, and the share of runs in progress."""
    found: Spending = get_spending(*of_month(at, ZoneInfo(zone)))
    return {
        "went": [
            (
                title,
                [(share.name, share.usd, _format_share(share.usd, share.calls)) for share in shares[:SHARES]],
            )
            for title, shares in (
                ("By workflow", found.workflows),
                ("By model", found.models),
                ("By tool", found.tools),
            )
        ],
        "under_way": month.spent - found.total,
    }


def _by_model(at: datetime, request: PageRequest) -> list[tuple[str, list[tuple[str, Decimal]]]]:
    zone = ZoneInfo(request.member.tenant.time_zone)
    found = daily_by_model(at, zone, DAYS)
    return [
        (f"{day:%d %b}", sorted(of.items(), key=lambda one: -one[1]))
        for day, of in sorted(found.items(), reverse=True)
    ]


def _with_current_tag(form: Any, tag: str) -> Any:
    """Return a refused form with the tag of the current version."""
    if form is None:
        return None
    name = form.add_prefix("tag")
    if name in form.data:
        again = form.data.copy()
        again[name] = tag
        form.data = again
    return form


def _ceilings_form(ceilings: Ceilings) -> CeilingsForm:
    given: dict[str, Any] = {}
    for name in BOUNDS:
        amount = getattr(ceilings, name)
        given[name] = None if amount is None else f"{amount.normalize():f}"
        given[f"no_{name}"] = amount is None
    return CeilingsForm(initial={**given, "tag": ceilings.tag})


def _rates_form(limits: Rates) -> RatesForm:
    return RatesForm(initial={**limits.model_dump(), "tag": limits.tag})


def _build_window_context(window: Window, at: datetime) -> dict[str, Any]:
    soft = None if window.limit is None else window.limit * SOFT
    return {"word": WORDS[window.kind], "window": window, "soft": soft, "outlook": window.outlook(at)}


def _last_days(known: list[Window], at: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Build the last 30 days, including days without a run: as columns and as a table, newest first."""
    today = at.astimezone(zone).date()
    spent = {day.start.astimezone(zone).date(): day.spent for day in known}
    dates = [today - timedelta(days=number) for number in reversed(range(DAYS))]
    amounts = [spent.get(date, ZERO) for date in dates]
    rows = [
        (f"{date:%d %b}", amount, _format_usd(amount)) for date, amount in zip(dates, amounts, strict=True)
    ]
    return {"bars": rows[::-1], "columns": columns_of(amounts), "width": WIDTH, "height": HEIGHT}


def _format_share(usd: Decimal, calls: int) -> str:
    return f"{_format_usd(usd)} · {calls:,} call{'' if calls == 1 else 's'}"


def _format_usd(amount: Decimal) -> str:
    return f"${amount:.4f}" if 0 < amount < Decimal("0.1") else f"${amount:,.2f}"


def _capitalize_first(text: str) -> str:
    return text[0].upper() + text[1:]
