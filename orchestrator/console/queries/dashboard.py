"""The data of the first page: open work for people, and limits that are exceeded (R-UI-1).

Each number is counted as the list it links to counts. Call it in the tenant's context.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Count as Counted
from django.db.models import Min, Q
from django.db.models.functions import TruncHour

from approvals.core.policy import Decider
from approvals.models import Request
from approvals.queries.inbox import waiting_for
from budgets.models import Account, Line
from budgets.queries import tenant_spending
from orchestrator.outbound.models import CircuitRow
from orchestrator.reviews.queries.reviews import list_unanswered_reviews
from orchestrator.runs.models.emergency_stop import EmergencyStop
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.run_list import (
    LIVE,
    Count,
    Filters,
    Meter,
    count_up_to_cap,
    plan_anew,
    runs_by,
)
from tenancy.db.tenant_context import current_tenant

DAY: Final = timedelta(days=1)
HOURS: Final = 24
PATIENCE: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWork:
    """Open work for people.

    These are the open requests that the person may decide, with the oldest one's creation and the nearest
    expiry; all open requests; unanswered review items; paused runs; and runs that failed after `since`.
    """

    requests: Count
    open: Count
    oldest: datetime | None
    nearest: datetime | None
    reviews: Count
    paused: Count
    failed: Count
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One window of the tenant's spending, in US$.

    `days` is the number of days that the remainder lasts at this pace; None where the window ends first, or
    there is no ceiling.
    """

    name: str
    meter: Meter
    ends: datetime
    days: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentActivity:
    """The current activity.

    `begun` counts the runs of the last 24 hours, `hours` those of each hour, oldest first.
    """

    begun: Count
    running: Count
    waiting: Count
    queued: Count
    oldest_queued: datetime | None
    hours: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of workers and dependencies.

    `away` and `repeated` count runs of the last day that a breaker ended: because a dependency was
    unreachable, or because the same failure recurred. `open_circuits` counts tools and providers whose
    circuit is not closed. `raised` are not stops, but tools that need approval since an administrator
    raised their risk class.
    """

    workers: int
    stuck: bool
    away: Count
    repeated: Count
    since: datetime
    open_circuits: int
    stops: tuple[EmergencyStop, ...]
    raised: tuple[EmergencyStop, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The four sections of the page. `fresh`: the tenant has no run yet."""

    needs: OpenWork
    money: tuple[Spending, ...]
    now: CurrentActivity
    health: Health
    fresh: bool


def build_overview(at: datetime, decider: Decider | None = None) -> Overview:
    """Return the first page's numbers at `at` for a decider; without one every open request counts."""
    plan_anew()
    moving = now_of(at)
    return Overview(
        needs=needs_of(at, decider), money=money_of(at), now=moving, health=health_of(at, moving),
        fresh=not Run.objects.exists(),
    )  # fmt: skip


def needs_of(at: datetime, decider: Decider | None = None) -> OpenWork:
    """Return the open work for people."""
    since = at - DAY
    waiting = Request.objects.filter(status="pending")
    theirs = waiting if decider is None else waiting_for(decider)
    ends = theirs.aggregate(oldest=Min("created_at"), nearest=Min("expires_at"))
    return OpenWork(
        requests=count_up_to_cap(theirs),
        open=count_up_to_cap(waiting),
        oldest=ends["oldest"],
        nearest=ends["nearest"],
        reviews=count_up_to_cap(list_unanswered_reviews()),
        paused=count_up_to_cap(runs_by(Filters(status="paused"))),
        failed=count_up_to_cap(runs_by(Filters(view="problems", finished_after=since))),
        since=since,
    )


def money_of(at: datetime) -> tuple[Spending, ...]:
    """Return the tenant's spending of the day and month; a window without spending is not open."""
    spent = tenant_spending(at)
    names = {"tenant_day": "Today", "tenant_month": "This month"}
    accounts = Account.objects.filter(kind__in=names, window_start__lte=at, window_end__gt=at)
    lines = {line.account_id: line for line in Line.objects.filter(account__in=accounts)}
    found = sorted(accounts, key=lambda account: account.kind)
    return tuple(
        _build_spending(account, lines[account.id], spent[account.kind], names[account.kind], at)
        for account in found
        if account.id in lines
    )


def _build_spending(account: Account, line: Line, spent: Decimal, name: str, at: datetime) -> Spending:
    """Build a spending window; spent parts of a run's tranche count as spent.

    The tranche is held on the line as a whole.
    """
    assert account.window_start is not None
    assert account.window_end is not None
    held = max(Decimal(0), line.used + line.reserved - spent)
    passed = Decimal((at - account.window_start).total_seconds()) / Decimal(DAY.total_seconds())
    left = None if line.limit is None else max(Decimal(0), line.limit - spent)
    days = left * passed / spent if left is not None and spent > 0 else None
    beyond = days is not None and at + timedelta(days=min(10_000, float(days))) >= account.window_end
    return Spending(
        name=name,
        meter=Meter(used=spent, reserved=held, limit=line.limit),
        ends=account.window_end,
        days=None if beyond else days,
    )


def now_of(at: datetime) -> CurrentActivity:
    """Return the current activity, and the number of runs created in each hour of the last day."""
    queued = Run.objects.filter(status="queued")
    began = Run.objects.filter(created_at__gt=at - DAY).annotate(hour=TruncHour("created_at"))
    hours = dict(began.order_by().values_list("hour").annotate(n=Counted("id")))
    first = at.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    return CurrentActivity(
        begun=count_up_to_cap(runs_by(Filters(created_after=at - DAY))),
        running=count_up_to_cap(runs_by(Filters(status="in_progress"))),
        waiting=count_up_to_cap(runs_by(Filters(view="needs"))),
        queued=count_up_to_cap(queued),
        oldest_queued=queued.aggregate(oldest=Min("created_at"))["oldest"],
        hours=tuple(hours.get(first + timedelta(hours=number), 0) for number in range(HOURS)),
    )


def health_of(at: datetime, moving: CurrentActivity) -> Health:
    """Return the state of workers and dependencies, as this tenant's runs show it.

    Workers are counted by the leases that they hold on the tenant's runs.
    """
    since = at - DAY
    live, held = Run.objects.filter(status__in=LIVE), _list_tenant_stops()
    seen = live.filter(lease_until__gt=at).aggregate(workers=Counted("lease_owner", distinct=True))
    away, repeated = (
        count_up_to_cap(runs_by(Filters(terminal_code=code, finished_after=since)))
        for code in ("UNAVAILABLE_DEP", "REPEATED_FAILURE")
    )
    return Health(
        workers=seen["workers"],
        stuck=moving.oldest_queued is not None and moving.oldest_queued < at - PATIENCE,
        away=away,
        repeated=repeated,
        since=since,
        open_circuits=CircuitRow.objects.exclude(state="closed").count(),
        stops=tuple(stop for stop in held if stop.scope != "risk"),
        raised=tuple(stop for stop in held if stop.scope == "risk"),
    )


def _list_tenant_stops() -> list[EmergencyStop]:
    """Return the stops that hold this tenant's runs, filtered by tenant: it is not a tenant table."""
    of_ours = Q(scope="global") | Q(tenant_id=current_tenant())
    found = EmergencyStop.objects.filter(of_ours, lifted_at=None).exclude(scope="policy")
    return list(found.order_by("at")[:20])
