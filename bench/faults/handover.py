"""How runs change hands: after a worker's death, after SIGTERM, after the broker forgot them, and how warm a
fresh worker is. One worker holds all of the runs, in calls that last until they are let go on."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep

from bench.faults.fault_injection import LEASE_SECONDS, Target, flush_broker
from bench.faults.processes import wait_until
from bench.faults.recovery_time import RecoveryTime, marks_now, measure_recovery
from bench.faults.step_model import StepModel
from bench.faults.workload import Workload
from bench.thresholds import judge

# Bookings at the tool service alone: its calls can be held.
BOOKINGS = (1,)
ALLOWED_SECONDS = LEASE_SECONDS + 5.0
AT_ONCE_SECONDS = 2.0
WARM_SECONDS = 2.0
BACKLOG = 16
SLOW_SECONDS = 0.5
LIMIT_SECONDS = 60.0
UNFINISHED = "SELECT count(*)::int FROM orchestrator_run WHERE finished_at IS NULL"


def measure_handovers(target: Target, load: Workload, model: StepModel) -> None:
    """Measure all of it, print it, judge it."""
    target.second.end()
    _measure_first_turn(target, load, model)
    _measure_backlog(target, load)
    for runs in (4, 16):
        _measure_death(target, load, runs)
    _measure_hand_on(target, load)
    target.second.stand()


def _measure_first_turn(target: Target, load: Workload, model: StepModel) -> None:
    seconds: list[float] = []
    for _ in range(3):
        target.send("worker", signal.SIGKILL)
        wait_until(target.application_is_whole, "the worker does not come back")
        began = monotonic()
        (run,) = load.submit(1, BOOKINGS, effects=2)
        number = f"x{load.accepted[run].number:04}"
        wait_until(partial(_has_asked, model, number), "the model is not asked")
        seconds.append(model.first_asked[number] - began)
    said = ", ".join(f"{one:.2f}" for one in seconds)
    held = max(seconds) <= WARM_SECONDS
    judge(
        f"fresh worker: from a submission to the first call of its model: {said} s, bound {WARM_SECONDS:.0f}",
        held=held,
    )


def _has_asked(model: StepModel, number: str) -> bool:
    return number in model.first_asked


def _measure_backlog(target: Target, load: Workload) -> None:
    target.send("worker", signal.SIGKILL)
    load.service.journal.tell(slow=SLOW_SECONDS)
    runs = load.submit(BACKLOG, BOOKINGS, effects=2)
    flush_broker(target)
    wait_until(target.application_is_whole, "the worker does not come back")
    began = monotonic()
    tags = {next(iter(load.accepted[run].steps)) for run in runs}
    wait_until(lambda: _asked(load, tags) == len(tags), "the backlog does not begin")
    took, most = monotonic() - began, _most_at_once(load, tags)
    load.service.journal.tell()
    held = took <= LEASE_SECONDS + 5 and most >= BACKLOG // 2
    judge(
        f"FLUSHALL before {BACKLOG} runs were begun: the last one at work {took:.1f} s after the worker was"
        f" ready, {most} at once",
        held=held,
    )


def _wait_until_idle(target: Target) -> None:
    """Wait until every run has ended: one of an earlier measurement would be counted again."""
    wait_until(lambda: target.database.rows(UNFINISHED) == [(0,)], "runs of before do not end")


def _asked(load: Workload, tags: set[str]) -> int:
    return len({line["step"] for line in load.service.journal.lines() if line["step"] in tags})


def _most_at_once(load: Workload, tags: set[str]) -> int:
    """Return how many calls of these steps were under way at the same moment."""
    change = {"asked": 1, "answered": -1}
    now = most = 0
    for line in load.service.journal.lines():
        if line["step"] in tags:
            now += change.get(line["kind"], 0)
            most = max(most, now)
    return most


@contextmanager
def _held_runs(target: Target, load: Workload, count: int) -> Iterator[int]:
    """Have the supervisor's worker hold so many runs, each in a call; yield its process id. The second worker
    is there at the end of that, with nothing in hand."""
    _wait_until_idle(target)
    target.second.end()
    wait_until(target.application_is_whole, "the worker does not come back")
    load.service.journal.tell(held=True)
    try:
        tags = {next(iter(load.accepted[run].steps)) for run in load.submit(count, BOOKINGS, effects=2)}
        wait_until(lambda: _asked(load, tags) == count, "the runs are not under way")
        target.second.start()
        pid = target.application.pid("worker")
        assert pid is not None
        yield pid
    finally:
        load.service.journal.tell()


def _measure_death(target: Target, load: Workload, count: int) -> None:
    with _held_runs(target, load, count) as pid:
        since = monotonic()
        target.send("worker", signal.SIGKILL)
        marks = marks_now(target.database, pid)
        load.service.journal.tell()
        found = measure_recovery(target.database, marks, since, bound=LIMIT_SECONDS)
    _judge(f"kill -9 of a worker with {len(marks)} runs under way", found, ALLOWED_SECONDS, count)


def _measure_hand_on(target: Target, load: Workload, count: int = 8) -> None:
    with _held_runs(target, load, count) as pid:
        marks = marks_now(target.database, pid)
        target.send("worker", signal.SIGTERM)
        sleep(0.5)
        since = monotonic()
        load.service.journal.tell()
        found = measure_recovery(target.database, marks, since, bound=LIMIT_SECONDS, by="fence")
    _judge(
        f"SIGTERM of a worker with {len(marks)} runs, from the end of the call to the next holder",
        found,
        AT_ONCE_SECONDS,
        count,
    )


def _judge(what: str, found: RecoveryTime, bound: float, count: int) -> None:
    held = found.runs == count and found.is_complete and found.longest <= bound
    judge(f"{what}: p50 {found.p50:.1f} s, max {found.longest:.1f} s, bound {bound:.0f}", held=held)
