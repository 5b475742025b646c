"""Two workers, a sweeper, a canceller, two reviewers, the clock and a failing company, in any order.

Every yield point is a commit or a send, and only one thread runs at a time, so a schedule that Hypothesis
finds is a schedule that can be played again (RING). Real PostgreSQL as the
application's role, the real company as the world.
"""

import os
from collections.abc import Iterator
from itertools import pairwise

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings

from orchestrator.outbound.actions import TenantCircuits
from tests.conftest import House
from tests.doubles.company import Company
from tests.journeys.interleaving.moves import ORDERS, SCHEDULES, Move
from tests.journeys.interleaving.stage import Stage
from tests.journeys.interleaving.theatre import Theatre, open_theatre
from tests.proves import proves

EXAMPLES = int(os.environ.get("INTERLOCK_SCHEDULES", "10"))
MORE, MANY = 60, 1_000
# Schedules that once broke a promise.
WOKEN_FOR_NOTHING = [Move("work", ("a", 11))]
OVERSLEPT_A_LOOK_UP = [Move("work", ("a", 3)), Move("time_passes", ("lease",)), Move("work", ("a", 1))]
OVERSLEPT_A_READ_BACK = [
    Move("work", ("a", 9)),
    Move("review", ("approver", "approve")),
    Move("work", ("a", 9)),
    Move("time_passes", ("lease",)),
]
VOID_AND_CANCELLED_AT_ONCE = [
    Move("work", ("a", 9)),
    Move("review", ("approver", "approve")),
    Move("time_passes", ("grants",)),
    Move("operate", ("cancel",)),
]
THREE_DIED_AT_ONE_STEP = [
    Move("work", ("a", 9)),
    Move("review", ("approver", "approve")),
    *[Move("crash_at", ("a", "before_dispatch")), Move("time_passes", ("lease",))] * 3,
]
ORDERED = settings(
    deadline=None, print_blob=True, derandomize=False, database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
    HealthCheck.data_too_large],
)  # fmt: skip


@pytest.fixture
def theatre(house: House, company: Company, superuser: psycopg.Connection) -> Iterator[Theatre]:
    """A theatre of this test's own."""
    with open_theatre(house, company, superuser) as opened:
        yield opened


@proves("RING", part="quiet")
def test_left_alone_the_refund_is_made_once_and_told_once(theatre: Theatre) -> None:
    stage = theatre.play("A-1001", [])
    assert len(stage.company.effects("payments")) == len(stage.company.effects("mail")) == 1


def test_what_failed_in_one_schedule_shuts_nothing_in_the_next(theatre: Theatre) -> None:
    TenantCircuits(theatre.world.id).trip("tool", "mail.send", "by the schedule before")
    stage = theatre.play("A-1001", [])
    assert stage.world.run(stage.run).terminal_code == "SUCCESS"


@proves("RING", part="interleaving")
@settings(ORDERED, max_examples=EXAMPLES)
@example(order="A-1001", moves=WOKEN_FOR_NOTHING)
@example(order="A-1001", moves=OVERSLEPT_A_LOOK_UP)
@example(order="A-1001", moves=OVERSLEPT_A_READ_BACK)
@example(order="A-1001", moves=VOID_AND_CANCELLED_AT_ONCE)
@example(order="A-1001", moves=THREE_DIED_AT_ONE_STEP)
@given(order=ORDERS, moves=SCHEDULES)
def test_no_order_of_steps_breaks_a_promise(theatre: Theatre, order: str, moves: list[Move]) -> None:
    _tell(theatre.play(order, moves))


@pytest.mark.slow
@pytest.mark.timeout(600)
@proves("RING", part="interleaving in sixty schedules")
@settings(ORDERED, max_examples=MORE)
@given(order=ORDERS, moves=SCHEDULES)
def test_no_order_of_steps_breaks_a_promise_in_sixty_schedules(
    theatre: Theatre, order: str, moves: list[Move]
) -> None:
    _tell(theatre.play(order, moves))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@proves("RING", part="interleaving at length")
@settings(ORDERED, max_examples=MANY)
@given(order=ORDERS, moves=SCHEDULES)
def test_no_order_of_steps_breaks_a_promise_in_a_thousand_schedules(
    theatre: Theatre, order: str, moves: list[Move]
) -> None:
    _tell(theatre.play(order, moves))


def _tell(stage: Stage) -> None:
    """For `--hypothesis-show-statistics`: how the runs ended, where workers died, what people had to
    reconcile.
    """
    event(stage.world.run(stage.run).terminal_code)
    for puppet in stage.puppets.values():
        for before, after in pairwise(puppet.trail):
            if after == "killed":
                event(f"killed at {before}")
    for kind in sorted(
        {"call_recovered", "run_recovered", "reconciled", "grant_voided", "call_in_doubt", "late_outcome"}
        & set(stage.world.kinds(stage.run))
    ):
        event(kind)
