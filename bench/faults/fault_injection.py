"""The faults: each breaks the application in one way, and says which runs were under way."""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from threading import Timer
from time import monotonic
from typing import Final

import redis

from bench.faults.processes import Database, PartName, RunningApplication, SecondWorker, wait_until
from bench.faults.recovery_time import RecoveryTime, RunMark, marks_now, measure_recovery
from config.devstack.embedded import EmbeddedValkey

LEASE_SECONDS: Final = 15
HELD_UP_SECONDS: Final = LEASE_SECONDS + 4.0
BOUND_SECONDS: Final = 90.0


@dataclass(slots=True, kw_only=True)
class Target:
    """What is broken: the application, its second worker, and the look at its tables."""

    application: RunningApplication
    second: SecondWorker
    database: Database
    _struck: set[int] = field(default_factory=set)
    _held: Timer | None = None

    def send(self, part: PartName, how: signal.Signals) -> int:
        """Send a signal that ends a part; its process id, which is nobody's once the application is whole."""
        pid = self.application.send(part, how)
        self._struck.add(pid)
        return pid

    def hold(self, pid: int, seconds: float) -> None:
        """Stop a process for so long."""
        os.kill(pid, signal.SIGSTOP)
        self._held = Timer(seconds, os.kill, (pid, signal.SIGCONT))
        self._held.daemon = True
        self._held.start()

    def application_is_whole(self) -> bool:
        """True if every process of the supervisor is there, anew where it was ended, and ready."""
        return not self._struck & set(self.application.children()) and self.application.is_whole()

    def is_whole(self) -> bool:
        """True if the second worker is there too; where it has ended it is started again."""
        held = self._held is not None and self._held.is_alive()
        if held or not self.application_is_whole():
            return False
        self.second.stand()
        return True


Strike = Callable[[Target], list[RunMark]]


def kill_part(part: PartName) -> Strike:
    """Return the fault that kills a part: the runs that the worker held, or all that were under way."""

    def strike(target: Target) -> list[RunMark]:
        before = marks_now(target.database)
        pid = target.send(part, signal.SIGKILL)
        return marks_now(target.database, pid) if part == "worker" else before

    return strike


def end_worker(target: Target) -> list[RunMark]:
    """Ask the supervisor's worker to end: the runs that it held."""
    marks = marks_now(target.database, target.application.pid("worker") or 0)
    target.send("worker", signal.SIGTERM)
    return marks


def hold_worker(target: Target) -> list[RunMark]:
    """Stop the second worker for longer than a lease, then let it go on: the runs that it held."""
    pid = target.second.pid
    assert pid is not None
    target.hold(pid, HELD_UP_SECONDS)
    return marks_now(target.database, pid)


def flush_broker(target: Target) -> list[RunMark]:
    """Let the broker forget everything: the runs that were under way."""
    with redis.Redis.from_url(EmbeddedValkey(target.application.data).url) as client:
        client.flushall()
    return marks_now(target.database)


def restart_all(target: Target) -> list[RunMark]:
    """End everything in order and start it again: the runs that were under way."""
    marks = marks_now(target.database)
    target.second.end()
    target.application.stop()
    target.database.close()
    target.application.start()
    return marks


def kill_all(target: Target) -> list[RunMark]:
    """Kill every process at once and start everything again at once: the runs that were under way."""
    marks = marks_now(target.database)
    target.application.kill()
    target.second.end(signal.SIGKILL)
    target.database.close()
    target.application.start()
    return marks


FAULTS: Final[Mapping[str, Strike]] = {
    "kill -9 worker": kill_part("worker"),
    "kill -9 web": kill_part("web"),
    "kill -9 scheduler": kill_part("beat"),
    "SIGSTOP worker, longer than a lease": hold_worker,
    "SIGTERM worker": end_worker,
    "FLUSHALL": flush_broker,
    "kill -9 broker": kill_part("valkey"),
    "kill -9 PostgreSQL": kill_part("postgres"),
    "restart of everything": restart_all,
    "kill -9 of everything": kill_all,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """One fault as it went: how long until the runs went on, and until every process was there again."""

    fault: str
    recovery: RecoveryTime
    whole_after: float


def plan_faults(chance: Random, names: tuple[str, ...]) -> list[str]:
    """Return the faults in the order of this seed: each once, the commonest of them twice."""
    order = [*names, *(name for name in names if name == "kill -9 worker")]
    chance.shuffle(order)
    return order


def strike_with(target: Target, fault: str) -> Struck:
    """Break the application, and measure until it goes on. Raises TimeoutError where it does not become
    whole."""
    since = monotonic()
    marks = FAULTS[fault](target)
    recovery = measure_recovery(target.database, marks, since, bound=BOUND_SECONDS)
    wait_until(target.is_whole, f"not whole again after {fault}")
    return Struck(fault=fault, recovery=recovery, whole_after=monotonic() - since)
