"""Where a run stands, told of a long trace as quickly as of a short one (R-SESS-11)."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.runs.models.run import Run
from orchestrator.runs.queries import progress
from orchestrator.runs.queries.progress import progress_of
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.company import Company
from tests.factories.world import World, company_at
from traces.models import Event


def steps_of(world: World, run: UUID) -> int:
    with tenant_transaction(world.id):
        return progress_of(Run.objects.get(id=run)).completed_step_count


def test_steps_are_counted_from_where_they_were_counted_last(world: World, company: Company) -> None:
    with company_at(company.url):
        run = world.submit("support-refund", "Refund order A-1003", inputs={"order_id": "A-1003"})
        world.drive(run)
        before = steps_of(world, run)
        counted, _ = progress._COUNTED[run]
        world.approve_all(run)
        with CaptureQueriesContext(connection) as asked:
            after = steps_of(world, run)
    counting = [
        query["sql"] for query in asked if "count" in query["sql"].lower() and "DISTINCT" in query["sql"]
    ]
    assert len(counting) == 1
    assert f'"seq" > {counted}' in counting[0]
    assert 0 < before < after
    with tenant_transaction(world.id):
        kinds = Event.objects.filter(run_id=run, kind__in=progress.KINDS)
        assert kinds.values("at").distinct().count() == after


def test_what_was_counted_once_is_not_counted_again_and_a_store_set_back_is(world: World) -> None:
    run = world.submit("tool-loop", "Add 2 and 3.")
    world.drive(run)
    found = steps_of(world, run)
    with CaptureQueriesContext(connection) as asked:
        assert steps_of(world, run) == found
    assert [query for query in asked if "DISTINCT" in query["sql"]] == []
    progress._COUNTED[run] = (10**6, 99)
    assert steps_of(world, run) == found


def test_a_process_keeps_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.setattr(progress, "MOST_KEPT", 2)
    runs = [world.submit("tool-loop", f"Task {number}") for number in range(3)]
    for run in runs:
        steps_of(world, run)
    assert list(progress._COUNTED) == runs[1:]
