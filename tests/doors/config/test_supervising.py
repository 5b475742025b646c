"""What the supervisor makes of steps that stand side by side; no process is started."""

import asyncio
import io
import re
import sys
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from config.devstack.child_process import Command
from config.devstack.process_specs import Part
from config.devstack.supervisor import (
    LONGEST_PAUSE_AFTER_READY,
    START_TRIES,
    Journal,
    StartFailedError,
    Step,
    Supervisor,
)
from tests.proves import proves


def supervised(*steps: Step | tuple[Step, ...]) -> tuple[int, str]:
    """The status of a start of these that is told to end as soon as it is up, and its log."""
    log = io.StringIO()

    async def run() -> int:
        supervisor = Supervisor(Journal(log))
        return await supervisor.run(steps, supervisor.on_signal)

    return asyncio.run(run()), log.getvalue()


@proves("R-API-10", part="what waits for nothing of each other starts side by side")
def test_steps_of_one_tuple_are_taken_together_and_the_next_after_all_of_them() -> None:
    meet, taken = Barrier(2, timeout=20), list[str]()

    def one() -> None:
        meet.wait()
        taken.append("one of two")

    status, _ = supervised((one, one), lambda: taken.append("after"))
    assert (status, taken) == (0, ["one of two", "one of two", "after"])


@pytest.mark.parametrize("kind", [StartFailedError, psycopg.OperationalError, OSError])
def test_a_failure_beside_others_ends_the_start_and_is_said_in_its_own_words(kind: type[Exception]) -> None:
    taken = list[str]()

    def fails() -> None:
        raise kind("The database is not there.")

    status, log = supervised((lambda: taken.append("beside"), fails), lambda: taken.append("after"))
    assert (status, taken) == (1, ["beside"])
    assert log.count("The database is not there.") == 1
    assert "ExceptionGroup" not in log


class Started:
    """A part whose process lives as long as it is told, start by start, and what its supervisor said."""

    def __init__(self, folder: Path, *programs: str) -> None:
        self.mark = folder / "ready"
        self.programs = list(programs)
        self.starts = 0
        self.log = io.StringIO()
        self.part = Part("part", self._command, self.mark.exists, before=self._before, patience=30)

    def _before(self) -> None:
        self.mark.unlink(missing_ok=True)

    def _command(self) -> Command:
        program = self.programs[min(self.starts, len(self.programs) - 1)]
        self.starts += 1
        argv = (
            sys.executable,
            "-c",
            f"import pathlib, time; mark = pathlib.Path({str(self.mark)!r}); {program}",
        )
        return Command(argv=argv, environment={}, folder=self.mark.parent)

    def run(self, *, until: str, times: int = 1) -> int:
        """Supervise the part until the log says so, so many times; the status."""

        async def supervise() -> int:
            supervisor = Supervisor(Journal(self.log))
            running = asyncio.create_task(supervisor.run((self.part,), lambda: None))
            async with asyncio.timeout(60):
                while self.log.getvalue().count(until) < times and not running.done():  # noqa: ASYNC110 - a log
                    await asyncio.sleep(0.01)
            supervisor.on_signal()
            return await running

        return asyncio.run(supervise())

    def pauses(self) -> list[float]:
        """The pauses before each further start, in seconds."""
        return [float(pause) for pause in re.findall(r"started again in ([0-9.]+) s", self.log.getvalue())]


ENDS = "raise SystemExit(1)"
STAYS = "mark.touch(); time.sleep(600)"
IS_KILLED = "mark.touch(); time.sleep(0.5); raise SystemExit(1)"


@proves("R-API-10", part="what ends at its first start is started again")
def test_a_part_that_ends_at_its_first_start_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.devstack.supervisor.FIRST_PAUSE", 0.01)
    started = Started(tmp_path, ENDS, ENDS, STAYS)
    assert started.run(until="part is ready") == 0
    assert (started.starts, started.pauses()) == (3, [0.01, 0.02])


def test_a_part_that_always_ends_at_its_first_start_ends_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.devstack.supervisor.FIRST_PAUSE", 0.01)
    started = Started(tmp_path, ENDS)
    assert started.run(until="part is ready") == 1
    assert started.starts == START_TRIES


@proves("R-API-10", part="a part that is killed often is back soon")
def test_the_pause_before_a_part_that_was_ready_is_bounded_at_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LONGEST_PAUSE_AFTER_READY == 2.0
    monkeypatch.setattr("config.devstack.supervisor.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("config.devstack.supervisor.LONGEST_PAUSE_AFTER_READY", 0.03)
    started = Started(tmp_path, IS_KILLED, IS_KILLED, IS_KILLED, IS_KILLED, STAYS)
    assert started.run(until="part is ready again", times=4) == 0
    assert started.pauses()[:4] == [0.01, 0.02, 0.03, 0.03]
