"""A worker in a thread of its own that moves only when it is told to, from one commit or send to the next."""

import threading
from collections.abc import Callable

from django.db import connection

from orchestrator.worker.effects.effect_executor import Performer
from orchestrator.worker.run_loop import Worker

PATIENCE_SECONDS = 60.0


class Killed(BaseException):
    """The process is gone: nothing is tidied up, the lease stays as it was."""


class Stuck(Exception):
    """A worker reached neither its next yield point nor its end."""


class Puppet:
    """One worker process. `at` is the yield point where it sleeps, None while it has nothing to do.

    Exactly one thread runs at any time: the puppet between `begin` or `step` and its next yield point, else
    whoever called. Every commit and every send lies between two yield points, so the order is the caller's
    choice alone.
    """

    def __init__(self, name: str, performer: Performer) -> None:
        self.worker = Worker(name=name, performer=performer, fault=self._yield)
        self.at: str | None = None
        self.trail: list[str] = []
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._doomed = False
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether it sleeps in the middle of something."""
        return self.at is not None

    def begin(self, work: Callable[[], object]) -> None:
        """Start `work` and let it run to its first yield point. What it raises is raised here."""
        assert not self.busy, f"{self.worker.name} is at {self.at}"
        self._doomed, self._error = False, None
        threading.Thread(target=self._body, args=(work,), name=self.worker.name, daemon=True).start()
        self._wait()

    def step(self) -> str | None:
        """Let it run to its next yield point; which one, or None when it is done."""
        self._go.release()
        self._wait()
        return self.at

    def kill(self) -> None:
        """End it where it sleeps, as kill -9 would."""
        self._doomed = True
        self._go.release()
        self._wait()

    def until(self, point: str, occurrence: int = 1) -> None:
        """Step until it sleeps at `point` for the n-th time from now. Raises Stuck when it ends before."""
        seen = 0
        while self.busy:
            if self.at == point:
                seen += 1
                if seen == occurrence:
                    return
            self.step()
        message = f"{self.worker.name} never came to {point}: {self.trail[-12:]}"
        raise Stuck(message)

    def finish(self, bound: int = 2_000) -> None:
        """Step until it is done."""
        while self.busy and bound:
            self.step()
            bound -= 1
        if self.busy:
            message = f"{self.worker.name} does not come to an end: {self.trail[-12:]}"
            raise Stuck(message)

    def _body(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Killed:
            self.trail.append("killed")
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, which raises it
            self._error = error
        finally:
            connection.close()
            self.at = None
            self._back.release()

    def _yield(self, point: str) -> None:
        self.at = point
        self.trail.append(point)
        self._back.release()
        self._go.acquire()
        if self._doomed:
            raise Killed

    def _wait(self) -> None:
        if not self._back.acquire(timeout=PATIENCE_SECONDS):
            message = f"{self.worker.name} is neither at a yield point nor done: {self.trail[-12:]}"
            raise Stuck(message)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
