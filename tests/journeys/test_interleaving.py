"""Two workers, a sweeper, a canceller, two reviewers, the clock and a failing company, in any order (THE-RING).

Every yield point is a commit or a send, and only one thread runs at a time, so a schedule that Hypothesis finds is a
schedule that can be played again. Real PostgreSQL as the application's role, the real company as the world.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings

from orchestrator.gateways.effects_loop import EffectLoop
from orchestrator.gateways.llm.gateway import ModelGateway
from orchestrator.gateways.tools.dispatcher import ToolGateway
from orchestrator.runtime.perform import Performer
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, make_world
from tests.journeys.interleaving.clock import Clock
from tests.journeys.interleaving.judge import everything_came_to_its_end, nothing_forbidden_happened
from tests.journeys.interleaving.moves import ORDERS, SCHEDULES, Move
from tests.journeys.interleaving.puppet import Puppet
from tests.journeys.interleaving.stage import Stage
from tests.proves import proves

EXAMPLES = int(os.environ.get("INTERLOCK_SCHEDULES", "25"))
MANY = 1_000
ORDERED = settings(
    deadline=None, print_blob=True, derandomize=False, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@dataclass(frozen=True)
class Theatre:
    """What all schedules of one test share: the tenant, the company, the clock, and the workers' asyncio threads."""

    world: World
    company: Company
    clock: Clock
    loops: dict[str, EffectLoop]

    def stage(self, order: str) -> Stage:
        """A fresh run among fresh workers in a company on its first day."""
        self.company.reset()
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
            error.add_note("\n".join(f"{name}: {puppet.trail}" for name, puppet in stage.puppets.items()))
            raise
        finally:
            stage.clear()
        return stage


@pytest.fixture
def theatre(house: House, company: Company, superuser: psycopg.Connection) -> Iterator[Theatre]:
    """The theatre, in which time passes only when the clock says so."""
    clock = Clock(superuser)
    clock.park_the_rest()
    loops = {name: EffectLoop() for name in ("a", "b", "sweeper")}
    long = override_settings(INTERLOCK_LEASE_SECONDS=3_600, INTERLOCK_SLICE_SECONDS=3_600)
    with long, company_at(company.url):
        yield Theatre(world=make_world(house), company=company, clock=clock, loops=loops)
    for loop in loops.values():
        loop.stop()


@proves("RING", part="quiet")
def test_left_alone_the_refund_is_made_once_and_told_once(theatre: Theatre) -> None:
    stage = theatre.play("A-1001", [])
    assert len(stage.company.effects("payments")) == len(stage.company.effects("mail")) == 1


@proves("RING", part="interleaving")
@settings(ORDERED, max_examples=EXAMPLES)
@given(order=ORDERS, moves=SCHEDULES)
def test_no_order_of_steps_breaks_a_promise(theatre: Theatre, order: str, moves: list[Move]) -> None:
    theatre.play(order, moves)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@proves("RING", part="interleaving at length")
@settings(ORDERED, max_examples=MANY)
@given(order=ORDERS, moves=SCHEDULES)
def test_no_order_of_steps_breaks_a_promise_in_a_thousand_schedules(
    theatre: Theatre, order: str, moves: list[Move]
) -> None:
    theatre.play(order, moves)
