"""The equipment of one worker process: its name, gateways, heartbeat and sweep."""

import os
import socket
from dataclasses import dataclass, field
from functools import cache
from secrets import token_hex
from threading import Thread

from django.conf import settings

from orchestrator.llm.gateways.client import ModelGateway
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.sandbox import monty_scripts
from orchestrator.worker.commit_throttle import switch_often
from orchestrator.worker.effects.effect_executor import Performer
from orchestrator.worker.fair_scheduler import FairScheduler
from orchestrator.worker.heartbeat import Heartbeat
from orchestrator.worker.run_loop import Worker
from orchestrator.worker.sweeper import Sweeper
from orchestrator.worker.usage_learner import Learner
from orchestrator.worker.warm_up import load_first_turn
from tenancy.db.process_lock import process_lock_number


@dataclass(slots=True, kw_only=True)
class Process:
    """One process's equipment."""

    worker: Worker
    heartbeat: Heartbeat
    sweep: Sweeper
    turns: FairScheduler
    learner: Learner = field(default_factory=Learner)

    def start(self) -> None:
        """Start the threads. The sandbox is probed now instead of in the first commit that needs it."""
        switch_often()
        Thread(target=monty_scripts.report_isolation, name="sandbox", daemon=True).start()
        self.heartbeat.start()
        self.sweep.start()
        self.learner.start()

    def warm_up(self) -> None:
        """Load what the first turn would load, so that the first run of a new worker does not wait for it.

        Raises: django.db.Error if the database does not answer.
        """
        load_first_turn()
        self.worker.performer.loop.start()

    def stop(self) -> None:
        """Stop gracefully (R-SESS-13): start no new slice, and release each run before its next effect.

        Leases are renewed until the last effect has ended.
        """
        self.worker.stopping = True
        self.sweep.stop()
        self.learner.stop()

    def end(self) -> None:
        """End the heartbeat, and the effect loop with its clients, once no run is held.

        The runs of the sweep count as held, too.
        """
        if self.sweep.is_alive():
            self.sweep.join(settings.INTERLOCK_DRAIN_SECONDS)
        self.heartbeat.stop()
        self.worker.performer.loop.stop()


def make_worker(loop: EffectLoop | None = None) -> Worker:
    """Build a worker with its own gateways, under a name that was never used before.

    The name states the lock that the process holds, if any: the lease ends with that lock (`leases.py`).
    """
    lock = process_lock_number()
    own = f"lock:{lock}" if lock is not None else token_hex(4)
    name = f"{socket.gethostname()[:40]}:{os.getpid()}:{own}"
    performer = Performer(loop=loop or EffectLoop(), models=ModelGateway(), tools=ToolGateway())
    return Worker(name=name, performer=performer)


@cache
def this_process() -> Process:
    """Return this process's equipment, built at first use (after any fork)."""
    worker = make_worker()
    turns = FairScheduler(worker, threads=settings.INTERLOCK_WORKER_THREADS)
    return Process(worker=worker, heartbeat=Heartbeat(), sweep=Sweeper(worker, turns), turns=turns)
