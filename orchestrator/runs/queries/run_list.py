"""The list of runs: filters, views, keyset pages, counts that stop at ten thousand (R-UI-2, R-UI-12).

Every filter has an index, or searches the newest runs first; a cost filter searches the newest ten thousand
only. A page finds the ids first, mostly in an index alone, and then loads its fifty rows. Call it inside
the tenant's context.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals.models import Request
from budgets.models import Line
from orchestrator.core.common.run_status import Status, TerminalCode
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.runs.models.run import Intent, Run
from tenancy.core.timestamps import in_utc, read_moment
from tenancy.models import Principal
from traces.core.canonical import format_decimal

PAGE: Final = 50
CAP: Final = 10_000
LONGEST: Final = 200
FINEST: Final = Decimal("1e-12")
NEWEST: Final = ("-created_at", "-id")
PLANNING: Final = """
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true)"""
LIVE: Final = ("queued", "in_progress", "awaiting_gate", "awaiting_input", "paused")

VIEWS: Final[Mapping[str, tuple[str, ...]]] = {
    "needs": ("awaiting_gate", "awaiting_input", "paused"),
    "active": ("queued", "in_progress"),
    "problems": ("failed", "expired"),
    "all": (),
}
COLUMNS: Final = (
    "id", "title", "workflow", "status", "terminal_code", "reason", "position", "scripted", "submitted_by",
    "created_at", "started_at", "finished_at", "version",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Count:
    """A number of rows; rows beyond the cap are not counted."""

    number: int

    @property
    def is_capped(self) -> bool:
        """True if there are more rows than were counted."""
        return self.number > CAP

    def __str__(self) -> str:
        """Format the number as it is shown: 1,204 or 10,000+."""
        return f"{CAP:,}+" if self.is_capped else f"{self.number:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of a list; None means no filter.

    `q` is the beginning of an id, or a part of the title or of the workflow's name. `faults` names the
    invalid query parameters.
    """

    view: str = "all"
    status: str | None = None
    workflow: str | None = None
    terminal_code: str | None = None
    q: str | None = None
    created_after: datetime | None = None
    finished_after: datetime | None = None
    cost__gt: Decimal | None = None
    tool: str | None = None
    faults: tuple[str, ...] = ()

    @property
    def active_filters(self) -> dict[str, str]:
        """The filters in force besides the view, as query parameters."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("view", "faults")}
        return {name: _format_filter_value(value) for name, value in found.items() if value is not None}

    @property
    def query(self) -> str:
        """The query string of the list; empty where every run is in the list."""
        return self.query_without("")

    def query_without(self, name: str, **more: str) -> str:
        """Return the query string without one of the filters, and with `more` parameters."""
        parts = {"view": self.view} if self.view != "all" else {}
        parts |= {given: value for given, value in self.active_filters.items() if given != name}
        return urlencode(parts | more)

    @property
    def plain(self) -> bool:
        """True if every run is in the list."""
        return self.view == "all" and not self.active_filters


def _format_filter_value(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def filters_of(query: Mapping[str, str]) -> Filters:
    """Parse the filters of a query; invalid ones are named in `faults` and left out."""
    found: dict[str, Any] = {}
    faults: list[str] = []
    for name, read in READERS.items():
        text = query.get(name, "").strip()
        if not text:
            continue
        try:
            found[name] = read(text[:LONGEST])
        except (ValueError, InvalidOperation):
            faults.append(name)
    return Filters(**found, faults=tuple(faults))


def _one_of(*words: str) -> Any:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return read


def _parse_filter_time(text: str) -> datetime:
    # An unquoted plus sign in a URL is decoded as a blank.
    found = parse_datetime(text.replace(" ", "+"))
    if found is None:
        raise ValueError(text)
    # A form field has no time zone: it is the reader's.
    return in_utc(found) if found.tzinfo is not None else timezone.make_aware(found)


def _parse_filter_amount(text: str) -> Decimal:
    found = Decimal(text)
    if not (found.is_finite() and 0 <= found < 10**9):
        raise ValueError(text)
    # No cost is finer than that, and PostgreSQL does not accept numbers of any length.
    told = found.quantize(FINEST)
    if told != found:
        raise ValueError(text)
    return Decimal(format_decimal(told))


def _parse_filter_text(text: str) -> str:
    if "\0" in text:
        raise ValueError(text)
    return text


READERS: Final[Mapping[str, Any]] = {
    "view": _one_of(*VIEWS),
    "status": _one_of(*Status),
    "workflow": _parse_filter_text,
    "terminal_code": _one_of(*TerminalCode),
    "q": _parse_filter_text,
    "created_after": _parse_filter_time,
    "finished_after": _parse_filter_time,
    "cost__gt": _parse_filter_amount,
    "tool": _parse_filter_text,
}


def runs_by(filters: Filters) -> QuerySet[Run]:
    """Return the runs that a list shows, unordered."""
    found = Run.objects.filter(status__in=VIEWS[filters.view]) if VIEWS[filters.view] else Run.objects.all()
    exact = {"status": filters.status, "workflow": filters.workflow, "terminal_code": filters.terminal_code}
    found = found.filter(**{name: value for name, value in exact.items() if value is not None})
    if filters.created_after is not None:
        found = found.filter(created_at__gt=filters.created_after)
    if filters.finished_after is not None:
        found = found.filter(finished_at__gt=filters.finished_after)
    if filters.q is not None:
        found = found.filter(_build_name_filter(filters.q))
    if filters.tool is not None:
        found = found.filter(Exists(Intent.objects.filter(run_id=OuterRef("id"), tool=filters.tool)))
    return found if filters.cost__gt is None else _filter_by_cost(found, filters.cost__gt)


def _filter_by_cost(found: QuerySet[Run], amount: Decimal) -> QuerySet[Run]:
    """Return the runs that cost more than `amount`, among the newest ten thousand.

    No index can hold a value that each commit changes, so these runs are scanned in list order, and the
    page states the limit.
    """
    cost = Line.objects.filter(account_id=OuterRef("id"), dimension="cost_usd").values("used")[:1]
    edge = found.order_by(*NEWEST).values_list("created_at", "id")[CAP : CAP + 1].first()
    # A subquery for each run instead of a join: a join would read every line of the tenant first.
    found = found.annotate(spent=Subquery(cost)).filter(spent__gt=amount)
    if edge is None:
        return found
    at, last = edge
    return found.filter(created_at__gte=at).filter(Q(created_at__gt=at) | Q(id__gt=last))


def _build_name_filter(text: str) -> Q:
    # The few workflow names are read once, not for each run.
    workflows = [slug for slug in list_workflow_choices() if text.lower() in slug.lower()]
    named = Q(title__icontains=text) | Q(workflow__in=workflows) if workflows else Q(title__icontains=text)
    span = id_span(text)
    return named if span is None else named | Q(id__range=span)


def list_workflow_choices() -> list[str]:
    """Return the names of the tenant's workflows, including retired ones."""
    return list(WorkflowVersion.objects.order_by("slug").values_list("slug", flat=True).distinct())


def id_span(text: str) -> tuple[UUID, UUID] | None:
    """Return the first and last id that begin with `text`; None where no id does."""
    digits = text.replace("-", "").lower()
    if not 6 <= len(digits) <= 32 or any(digit not in "0123456789abcdef" for digit in digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def count_up_to_cap(found: "QuerySet[Any]") -> Count:
    """Count rows, up to the cap."""
    return Count(found.order_by().values("id")[: CAP + 1].count())


def view_counts() -> dict[str, Count]:
    """Count the runs in each view, as the list of each counts them, in one query."""
    plan_anew()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(map(_build_count_sql, VIEWS.values()))}")
        numbers = cursor.fetchone()
    assert numbers is not None
    return {name: Count(number) for name, number in zip(VIEWS, numbers, strict=True)}


def _build_count_sql(states: tuple[str, ...]) -> str:
    of = f"WHERE status IN ({', '.join(map(repr, states))})" if states else ""
    return f"(SELECT count(*) FROM (SELECT 1 FROM orchestrator_run {of} LIMIT {CAP + 1}) AS those)"  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """One line of a budget; a limit of None is none."""

    used: Decimal
    reserved: Decimal
    limit: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """The request that a run waits for; `until` is its expiry."""

    request: UUID
    kind: str
    tool: str
    queue: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A row of the list."""

    run: Run
    cost: Meter | None
    steps: Meter | None
    waiting: WaitingRequest | None
    started_by: str

    @property
    def live(self) -> bool:
        """True if the run can still be paused or cancelled."""
        return self.run.status in LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListPage:
    """A page of the list; `following` is the cursor of the next page."""

    rows: tuple[ListedRun, ...]
    count: Count
    following: str | None


def plan_anew() -> None:
    """Make the rest of this transaction use custom plans, without sequential scans.

    The statements of a commit are looked up by key and planned once (config/databases.py), but the number
    of runs that a filter leaves depends on its value. Every list has an index in its own order, so a page
    costs the same even where statistics are wrong about a title.
    """
    with connection.cursor() as cursor:
        cursor.execute(PLANNING)


def list_run_page(filters: Filters, cursor: str = "") -> RunListPage:
    """Return a page of runs, newest first.

    Raises: ValueError for an invalid cursor.
    """
    plan_anew()
    found = runs_by(filters)
    page = found
    if cursor:
        at, last = _decode_cursor(cursor)
        page = found.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(id__lt=last))
    ids = list(page.order_by(*NEWEST).values_list("id", flat=True)[: PAGE + 1])
    runs = list(Run.objects.filter(id__in=ids).order_by(*NEWEST).only(*COLUMNS))
    more = len(runs) > PAGE
    counted = Count(len(runs)) if not cursor and not more else count_up_to_cap(found)
    following = _encode_cursor(runs[PAGE - 1]) if more else None
    return RunListPage(rows=rows_of(runs[:PAGE]), count=counted, following=following)


def _encode_cursor(run: Run) -> str:
    return urlsafe_b64encode(f"{run.created_at.isoformat()} {run.id}".encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[datetime, UUID]:
    at, _, last = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
    return read_moment(at), UUID(last)


def rows_of(runs: Sequence[Run]) -> tuple[ListedRun, ...]:
    """Return the list rows of these runs, in their order."""
    ids = [run.id for run in runs]
    lines = {
        (line.account_id, line.dimension): Meter(used=line.used, reserved=line.reserved, limit=line.limit)
        for line in Line.objects.filter(account_id__in=ids, dimension__in=["cost_usd", "steps"])
    }
    waiting = waiting_of(ids)
    names = names_of(run.submitted_by for run in runs)
    return tuple(
        ListedRun(
            run=run,
            cost=lines.get((run.id, "cost_usd")),
            steps=lines.get((run.id, "steps")),
            waiting=waiting.get(run.id),
            started_by=names.get(run.submitted_by, ""),
        )
        for run in runs
    )


def waiting_of(ids: Iterable[UUID]) -> dict[UUID, WaitingRequest]:
    """Return the open request of each run that has one; of several the one that expires first."""
    found = Request.objects.filter(run_id__in=list(ids), status="pending").order_by("-expires_at")
    columns = ("run_id", "id", "kind", "tool", "queue", "created_at", "expires_at")
    return {
        run: WaitingRequest(request=request, kind=kind, tool=tool, queue=queue, since=since, until=until)
        for run, request, kind, tool, queue, since, until in found.values_list(*columns)
    }


def names_of(principals: Iterable[UUID | None]) -> dict[UUID, str]:
    """Return the names of these principals."""
    wanted = {principal for principal in principals if principal is not None}
    found = Principal.objects.filter(id__in=wanted).values_list("id", "label")
    return dict(found)
