"""What a commit costs with `tenancy.db.pipeline`, and what it would cost with psycopg's own pipeline mode.

`python -m bench pipeline` drives `tool-loop` through 200 read-only calls a run. Each commit uses one of the
two, chosen at random, so that a busy machine disturbs both alike. Printed are the medians of processor time
and of time passed; judged is that psycopg's pipeline takes a tenth more of the processor, for else the module
would not be worth its code.
"""

import random
from collections.abc import Sequence
from functools import wraps
from statistics import median
from time import perf_counter, thread_time
from typing import Any
from unittest import mock

import psycopg
from django.conf import settings

from bench.thresholds import judge
from bench.transitions import SLICE_SECONDS, _ended, _house, _submitted
from orchestrator.commit.commit import commit_run
from orchestrator.worker import run_loop
from orchestrator.worker.process import make_worker
from tenancy.db import pipeline, statement_batch, tenant_context
from tenancy.db.pipeline import Rows, Statement

RUNS = 8
WORTH = 1.1
OWN, OTHER = "tenancy.db.pipeline", "psycopg's pipeline"
HOW = {OWN: pipeline.execute_pipeline}


def measure(superuser: psycopg.Connection) -> None:
    """Drive the runs, print both and their ratio. The first run only warms both up."""
    settings.INTERLOCK_SLICE_SECONDS = settings.INTERLOCK_LEASE_SECONDS = SLICE_SECONDS
    house, who = _house()
    worker, times = make_worker(), {name: list[tuple[float, float]]() for name in HOW}
    with mock.patch.object(run_loop, "commit_run", _timed(commit_run, times)):
        for number in range(1 + RUNS):
            run = _submitted(house, who)
            worker.advance(run)
            _ended(house, run)
            if number == 0:
                for measured in times.values():
                    measured.clear()
    processor = {name: median(cpu for cpu, _ in measured) for name, measured in times.items()}
    for name, measured in times.items():
        passed = median(wall for _, wall in measured)
        taken = f"{processor[name]:8.3f} ms of processor{passed:8.3f} ms in all"
        print(f"  {name:22}{taken}, {len(measured)} commits")
    ratio = processor[OTHER] / processor[OWN]
    judge(f"psycopg's pipeline takes {ratio:.3f} of the processor, and {WORTH} at least", held=ratio >= WORTH)


def _execute_with_psycopg(
    connection: "psycopg.Connection[Any]", sayings: Sequence[Statement]
) -> tuple[list[Rows], psycopg.Error | None]:
    """Do what `execute_pipeline` does, with a cursor for each statement."""
    cursors: list[psycopg.Cursor[Any]] = []
    # Before its first statement in a pipeline psycopg sends a BEGIN of its own and waits for it.
    begins = sayings[0] is pipeline.BEGIN and not connection.autocommit
    try:
        with connection.pipeline():
            for saying in sayings[begins:]:
                cursor = psycopg.RawCursor(connection)
                cursor.execute(saying.statement, saying.values or None, prepare=saying.prepared, binary=True)
                cursors.append(cursor)
    except psycopg.Error as error:
        return [], error
    answers = [cursor.fetchall() if cursor.description else [] for cursor in cursors]
    return [[]] * begins + answers, None


HOW[OTHER] = _execute_with_psycopg


def _timed(commit: Any, times: dict[str, list[tuple[float, float]]]) -> Any:
    """Wrap the commit: each call uses one of both pipelines and adds its times."""
    chance = random.Random(7)

    @wraps(commit)
    def timed(*given: Any, **named: Any) -> Any:
        name = chance.choice([*HOW])
        with (
            mock.patch.object(tenant_context, "execute_pipeline", HOW[name]),
            mock.patch.object(statement_batch, "execute_pipeline", HOW[name]),
        ):
            cpu, wall = thread_time(), perf_counter()
            done = commit(*given, **named)
            times[name].append(((thread_time() - cpu) * 1000, (perf_counter() - wall) * 1000))
        return done

    return timed
