"""What the supervisor makes of steps that stand side by side; no process is started."""

import asyncio
import io
from threading import Barrier

import psycopg
import pytest

from config.supervisor import Journal, StartFailedError, Step, Supervisor
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
