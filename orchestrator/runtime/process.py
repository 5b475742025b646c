"""What one worker process has: its name, its gateways, its heartbeat and its sweep."""

import os
import socket
from dataclasses import dataclass
from functools import cache
from secrets import token_hex

from orchestrator.gateways.effects_loop import EffectLoop
from orchestrator.gateways.llm.gateway import ModelGateway
from orchestrator.gateways.tools.dispatcher import ToolGateway
from orchestrator.runtime.held import Heartbeat
from orchestrator.runtime.loop import Worker
from orchestrator.runtime.perform import Performer
from orchestrator.runtime.sweep import Sweep


@dataclass(slots=True, kw_only=True)
class Process:
    """One process's equipment."""

    worker: Worker
    heartbeat: Heartbeat
    sweep: Sweep

    def start(self) -> None:
        """Start the threads."""
        self.heartbeat.start()
        self.sweep.start()

    def stop(self) -> None:
        """Graceful stop (R-SESS-13): no new slice, each run in hand is held before its next effect and
        given back."""
        self.worker.stopping = True
        self.sweep.stop()
        self.heartbeat.stop()


def make_worker() -> Worker:
    """A worker with gateways of its own, under a name nobody had before."""
    name = f"{socket.gethostname()[:40]}:{os.getpid()}:{token_hex(4)}"
    loop = EffectLoop()
    return Worker(name=name, performer=Performer(loop=loop, models=ModelGateway(), tools=ToolGateway()))


@cache
def this_process() -> Process:
    """This process's equipment, made at first use (after any fork)."""
    worker = make_worker()
    return Process(worker=worker, heartbeat=Heartbeat(), sweep=Sweep(worker))
