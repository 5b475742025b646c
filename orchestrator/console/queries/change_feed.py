"""Changes since a cursor, for pages that update themselves.

They cover the tenant's runs, for every list, and the data about one run that is outside of its trace. Call
it in the tenant's context.
"""

from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from psycopg import sql

from approvals.queries.change_tokens import version_of
from approvals.queries.live_requests import CANDIDATES as REQUESTS
from orchestrator.runs.models.run import LIVE, Run, RunSignal
from tenancy.db.change_cursor import SLACK, WRITTEN, list_changes, mark_now, mark_of
from tenancy.db.tenant_context import current_tenant, raw_cursor
from tenancy.people.dual_control import ALONE

_LIVE = ", ".join(f"'{status}'" for status in LIVE)
CANDIDATES = f"""
SELECT id, {{written}} AS written FROM orchestrator_run WHERE status IN ({_LIVE})
 UNION ALL
SELECT id, {{written}} FROM orchestrator_run WHERE finished_at >= {{since}}"""  # noqa: S608 - our own words


class ChangedRuns(NamedTuple):
    """Runs as they are now, the cursor after them, and whether there are more already."""

    runs: tuple[Run, ...]
    seq: str
    more: bool


def changed_runs(after: str) -> ChangedRuns:
    """Return the runs that changed after a cursor; for "" those that are live or have just ended.

    A run may come twice, none is missed.

    Raises: ValueError for an invalid cursor.
    """
    found = list_changes(CANDIDATES, after)
    rows = Run.objects.select_related("workflow_version").in_bulk(found.ids)
    return ChangedRuns(tuple(rows[key] for key in found.ids if key in rows), found.seq, found.more)


def get_run_change_token(run_id: UUID) -> str:
    """Return a token of a run's data outside its trace: decisions on its requests and operator signals.

    The token changes as soon as any of it changes.
    """
    wishes = RunSignal.objects.filter(run_id=run_id).count()
    return blake2b(f"{version_of(run_id)}/{wishes}".encode(), digest_size=6).hexdigest()


class ChangeCheck(NamedTuple):
    """The result of a check for changes: `anything` that the first page counts, and the next cursor `seq`."""

    anything: bool
    seq: str


# The tables that a tenant-wide page depends on besides runs and requests.
_BESIDE = (
    "orchestrator_circuitrow",
    "budgets_alert",
    "budgets_driftflag",
    "tenancy_notice",
    "orchestrator_toolproposal",
)
STIRRED = f"""
SELECT EXISTS (SELECT FROM ({CANDIDATES}) AS runs WHERE written >= {{xid}})
    OR EXISTS (SELECT FROM ({REQUESTS}) AS requests WHERE written >= {{xid}})
    OR EXISTS (SELECT FROM orchestrator_emergencystop
                WHERE (tenant_id IS NULL OR tenant_id = {{tenant}}) AND {{written}} >= {{xid}})
    OR EXISTS (SELECT FROM tenancy_auditentry
                WHERE verb = '{ALONE}' AND at > {{since}} AND {{written}} >= {{xid}})
    OR {" OR ".join(f"EXISTS (SELECT FROM {table} WHERE {{written}} >= {{xid}})" for table in _BESIDE)}"""  # noqa: S608 - our own words


def has_changed_since(after: str) -> ChangeCheck:
    """Check whether data of the tenant changed after a cursor.

    This covers runs, requests, stops, circuits, alerts, flags, notices and relaxations made by one
    administrator alone.

    Raises: ValueError for an invalid cursor.
    """
    mark, now = mark_of(after), mark_now()
    if mark is None or mark.xid > now.xid:
        return ChangeCheck(anything=True, seq=str(now))
    words = {
        "{written}": WRITTEN, "{since}": sql.quote(mark.at - SLACK), "{xid}": f"{mark.xid:d}",
        "{tenant}": sql.quote(current_tenant()),
    }  # fmt: skip
    query = STIRRED
    for word, value in words.items():
        query = query.replace(word, value)
    cursor = raw_cursor()
    cursor.execute(query.encode(), prepare=False)
    row = cursor.fetchone()
    assert row is not None
    return ChangeCheck(anything=bool(row[0]), seq=str(now))
