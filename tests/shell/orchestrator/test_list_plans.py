"""How the list's questions are answered by the database: from an index, whatever is asked for (R-UI-12)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection

from orchestrator.console.queries import system_status
from orchestrator.console.queries.dashboard import build_overview
from orchestrator.console.queries.run_summary import standing_of
from orchestrator.publishing.queries.workflows import list_all_workflows, list_workflow_slugs
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.run_list import PAGE, VIEWS, filters_of, list_run_page, plan_anew, view_counts
from orchestrator.runs.queries.runs import state_now
from orchestrator.runs.queries.safety_reviews import list_unreviewed_runs
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.tenancy import make_people, make_tenant
from tests.factories.world import World, company_at, make_world
from tests.proves import proves
from tests.servers import TestServers

RUNS = 4_000
SEED = """
INSERT INTO orchestrator_run
  (id, tenant_id, task_id, workflow, title, workflow_version_id, mode, scripted, submitted_by, owner, status,
   position, terminal_code, reason, result, retry_key, version, fence, takeovers, record_number, record_hash,
   event_seq, event_hash, snapshot_number, patch_bytes, manifest_digest, created_at, started_at, finished_at)
SELECT gen_random_uuid(), r.tenant_id, r.task_id, r.workflow, 'Refund order A-' || n, r.workflow_version_id,
  r.mode, r.scripted, r.submitted_by, r.owner, CASE WHEN n %% 20 = 0 THEN 'failed' ELSE 'completed' END,
  r.position, CASE WHEN n %% 20 = 0 THEN 'TIMEOUT' ELSE 'SUCCESS' END, '', '', '', 9, 9, 0, 40, r.record_hash,
  99, r.event_hash, 0, 0, r.manifest_digest, now() - n * interval '1 minute', now(), now()
  FROM orchestrator_run r, generate_series(1, %(runs)s) n WHERE r.id = %(run)s"""
SIGNALS = """
WITH signal AS (
  INSERT INTO orchestrator_runsignal (tenant_id, run_id, kind, payload, at)
  SELECT r.tenant_id, r.id, 'pause', '{}', now() - n * interval '13 hours'
    FROM orchestrator_run r, generate_series(0, %(signals)s - 1) n WHERE r.id = %(run)s RETURNING *)
INSERT INTO orchestrator_signalreceipt (id, tenant_id, run_id, record)
SELECT id, tenant_id, run_id, 1 FROM signal WHERE at <= now() - %(waiting)s * interval '13 hours'"""
ASKED = (
    "", "status=failed", "status=completed", "status=queued", "workflow=tool-loop", "workflow=none",
    "terminal_code=TIMEOUT", "terminal_code=SUCCESS&workflow=tool-loop", "q=A-3999", "q=order",
    "q=no+such+title", "tool=orders.lookup", "cost__gt=0.5", "cost__gt=0.5&status=failed",
    "created_after=2001-01-01T00:00Z&view=problems", "finished_after=2001-01-01T00:00Z",
    *(f"view={view}" for view in VIEWS),
)  # fmt: skip


def four_thousand(house: House, superuser: psycopg.Connection) -> World:
    """A tenant of four thousand runs, of which the planner knows."""
    world = make_world(house)
    run = world.submit("tool-loop", "The first of many")
    # The guards judge moves; these rows were never moved.
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(SEED, {"run": run, "runs": RUNS})
    # What autovacuum does to a table that is not made in a moment.
    superuser.execute("VACUUM (ANALYZE) orchestrator_run")
    return world


@pytest.fixture
def many(house: House, superuser: psycopg.Connection) -> World:
    """A tenant of this test's own with four thousand runs."""
    return four_thousand(house, superuser)


@pytest.fixture(scope="module")
def read(servers: TestServers) -> World:
    """The same for all tests that only read."""
    owner = make_tenant()
    with servers.superuser() as superuser:
        return four_thousand(House(tenant=owner, people=make_people(owner)), superuser)


@contextmanager
def plans(table: str = "orchestrator_run") -> Iterator[list[str]]:
    """The plans of the statements over a table, each as it is made where it is asked for."""
    found: list[str] = []

    def explained(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if re.search(rf'FROM "?{table}\b', sql):
            with connection.cursor() as cursor:
                execute_plainly(cursor, f"EXPLAIN {sql}", params)
                found.append("\n".join(line for (line,) in cursor.fetchall()))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explained):
        yield found


def end_to_end(found: Sequence[str]) -> list[str]:
    """The plans that read the whole table of runs."""
    return [plan for plan in found if re.search(r"Seq Scan on orchestrator_run\b", plan)]


def execute_plainly(cursor: Any, sql: str, params: Any) -> None:
    """Past the wrapper."""
    cursor.cursor.execute(sql, params)


def asked(query: str) -> dict[str, str]:
    """The parts of an address."""
    return dict(part.split("=") for part in query.replace("+", " ").split("&") if part)


@proves("R-UI-12", part="no filter reads all runs")
@pytest.mark.parametrize("query", ASKED)
def test_no_filter_reads_the_table_of_runs_from_end_to_end(read: World, query: str) -> None:
    with tenant_transaction(read.id), plans() as found:
        page = list_run_page(filters_of(asked(query)))
        if page.following:
            list_run_page(filters_of(asked(query)), page.following)
    assert found != []
    assert end_to_end(found) == []


@proves("R-UI-12", part="counting reads no table")
def test_counting_the_views_and_the_first_page_read_indexes_alone(many: World) -> None:
    with tenant_transaction(many.id), plans() as found:
        counts = view_counts()
        build_overview(database_now())
    assert str(counts["problems"]) == "200"
    assert (counts["all"].number, str(counts["needs"])) == (RUNS + 1, "0")
    assert end_to_end(found) == []


@proves("R-UI-12", part="how the parts stand is read without a walk over all runs")
def test_the_state_of_the_parts_and_what_is_to_be_reviewed_read_no_table(read: World) -> None:
    with tenant_transaction(read.id), plans() as found, plans("tenancy_auditentry") as audited:
        system_status.get_system_status(read.id, database_now())
        assert list_workflow_slugs() == [one.row.slug for one in list_all_workflows()]
        assert list_unreviewed_runs().runs == ()
    assert len(found) >= 3
    assert end_to_end(found) == []
    assert audited == []


@proves("R-UI-12", part="signals to be taken are counted without a walk over all there were")
def test_signals_that_wait_are_counted_from_those_of_the_last_day(
    house: House, superuser: psycopg.Connection
) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", "One that many signals were left for")
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(SIGNALS, {"run": run, "signals": RUNS, "waiting": 3})
    superuser.execute("VACUUM (ANALYZE) orchestrator_runsignal, orchestrator_signalreceipt")
    with tenant_transaction(world.id), plans("orchestrator_runsignal") as found:
        plan_anew()
        seen = system_status.get_system_status(world.id, database_now())
    # Three wait, and one of them for longer than a day.
    assert seen.signals == 2
    (plan,) = found
    assert "signal_by_time" in plan
    # How they are joined is the planner's; a list of all receipts, looked through for each signal, is none.
    assert "Anti Join" in plan


def test_a_rare_title_is_found_by_an_index(many: World) -> None:
    with tenant_transaction(many.id), plans() as found:
        (row,) = list_run_page(filters_of({"q": "a-3999"})).rows
    assert row.run.title == "Refund order A-3999"
    # Which of the indexes is the cheapest depends on how many runs other tenants have.
    assert "Seq Scan" not in found[0]


def test_the_newest_that_cost_more_come_first_and_pages_follow(
    many: World, superuser: psycopg.Connection
) -> None:
    with tenant_transaction(many.id):
        first = list_run_page(filters_of({}))
    dear = [row.run.id for row in first.rows[1::2]]
    lines = (
        'INSERT INTO budgets_line (id, tenant_id, account_id, dimension, "limit", used, reserved) '
        "SELECT gen_random_uuid(), tenant_id, id, 'cost_usd', 1, 0.7, 0 "
        "FROM orchestrator_run WHERE id = ANY(%s)"
    )
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(lines, (dear,))
    with tenant_transaction(many.id):
        assert [row.run.id for row in list_run_page(filters_of({"cost__gt": "0.6"})).rows] == dear
        assert list_run_page(filters_of({"cost__gt": "0.7"})).rows == ()
    assert len(dear) == PAGE // 2


def test_since_when_a_run_stands_is_read_without_a_walk_over_its_trace(
    house: House, company: Company, superuser: psycopg.Connection
) -> None:
    world = make_world(house)
    with company_at(company.url):
        run = world.submit("support-refund", "Refund order A-1003", inputs={"order_id": "A-1003"})
        world.drive(run)
    superuser.execute("ANALYZE traces_event")
    with tenant_transaction(world.id), plans("traces_event") as found:
        plan_anew()
        standing = standing_of(Run.objects.get(id=run), state_now(run))
    assert standing.since is not None
    assert [plan for plan in found if "run_started" in plan] != []
    assert [plan for plan in found if "run_started" in plan and "event_turns" not in plan] == []
