"""Where schedules are played: a tenant, the company, a clock, and workers' asyncio threads, shared by many
stages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import psycopg
from django.test import override_settings

from orchestrator.core.common import backoff
from orchestrator.llm.gateways.client import ModelGateway
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.worker.effects.effect_executor import Performer
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.journeys.interleaving.clock import Clock
from tests.journeys.interleaving.judge import everything_came_to_its_end, nothing_forbidden_happened
from tests.journeys.interleaving.moves import Move
from tests.journeys.interleaving.puppet import Puppet
from tests.journeys.interleaving.stage import Stage


@dataclass(frozen=True)
class Theatre:
    """What all schedules of one test share: the tenant, the company, the clock, and the workers' asyncio
    threads.
    """

    world: World
    company: Company
    clock: Clock
    loops: dict[str, EffectLoop]

    def stage(self, order: str) -> Stage:
        """A fresh run among fresh workers in a company on its first day, which has not failed yet."""
        self.company.reset()
        self.clock.failures_are_forgotten(self.world.id)
        puppets = {
            name: Puppet(name, Performer(loop=loop, models=ModelGateway(), tools=ToolGateway()))
            for name, loop in self.loops.items()
        }
        run = self.world.submit("support-refund", f"Refund order {order}", inputs={"order_id": order})
        return Stage(world=self.world, company=self.company, clock=self.clock, puppets=puppets, run=run)

    def play(self, order: str, moves: list[Move]) -> Stage:
        """Play a schedule under the judge's eyes, then let everybody finish."""
        stage = self.stage(order)
        try:
            for move in moves:
                move.make(stage)
                nothing_forbidden_happened(stage)
            stage.close()
            everything_came_to_its_end(stage)
        except BaseException as error:
            trails = [f"{name}: {puppet.trail}" for name, puppet in stage.puppets.items()]
            error.add_note("\n".join([f"order {order}, moves {moves}", *trails]))
            raise
        finally:
            stage.clear()
        return stage


@contextmanager
def open_theatre(house: House, company: Company, superuser: psycopg.Connection) -> Iterator[Theatre]:
    """A theatre in which time passes only when the clock says so: leases are long, and retries wait for
    nothing.
    """
    clock = Clock(superuser)
    clock.park_the_rest()
    loops = {name: EffectLoop() for name in ("a", "b", "sweeper")}
    long = override_settings(INTERLOCK_LEASE_SECONDS=3_600, INTERLOCK_SLICE_SECONDS=3_600)
    no_waits = mock.patch.object(backoff, "CAP_MS", 0)
    with long, no_waits, company_at(company.url):
        yield Theatre(world=make_world(house), company=company, clock=clock, loops=loops)
    for loop in loops.values():
        loop.stop()
