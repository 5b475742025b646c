"""Every safety rule, with its walls standing, and torn down one by one (RING).

A rule with one wall must break without it. A rule with two must hold with either, and break without both:
so no wall is decoration, and no test passes for a reason other than the wall it names.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple, Self

import psycopg
import pytest

from tests.conftest import House
from tests.doubles.company import Company
from tests.journeys.interleaving.theatre import Theatre, open_theatre
from tests.proves import proves
from tests.sabotage import patches, scenes
from tests.sabotage.patches import Wall
from tests.sabotage.scenes import Scene, Unsafe

ORDER = "A-1001"


class Rule(NamedTuple):
    """A safety rule: the scene that would show its breach, and every wall that keeps it."""

    name: str
    scene: Scene
    walls: tuple[Wall, ...]


RULES = (
    Rule("fence", scenes.a_worker_that_lost_its_lease_writes_nothing, (patches.no_fence,)),
    Rule("lease owner", scenes.a_worker_without_a_lease_writes_nothing, (patches.no_lease_owner,)),
    Rule("lease", scenes.a_lease_is_held_by_one, (patches.no_lease,)),
    Rule("consume", scenes.a_grant_that_ran_out_moves_no_money, (patches.no_consume,)),
    Rule("action digest", scenes.a_grant_is_for_one_action, (patches.no_action_digest,)),
    Rule("packet digest", scenes.a_decision_is_about_the_packet_that_was_seen, (patches.no_packet_digest,)),
    Rule("one decision", scenes.a_request_is_decided_once, (patches.no_pending, patches.no_request_trigger)),
    Rule("reserve", scenes.nothing_is_sent_unreserved, (patches.no_reserve, patches.no_permit)),
    Rule("dispatch", scenes.what_was_given_up_is_not_sent, (patches.no_dispatch_row, patches.no_permit)),
    Rule("permit", scenes.a_stop_holds_what_was_committed_before_it, (patches.no_permit,)),
    Rule(
        "write-ahead",
        scenes.what_was_sent_is_known_after_a_crash,
        (patches.no_write_ahead, patches.no_permit),
    ),
    Rule("one probe", scenes.one_call_tries_what_was_left_alone, (patches.no_probe_lease,)),
    Rule("tenant", scenes.another_tenant_sees_nothing, (patches.no_row_security,)),
    Rule("guard", scenes.nobody_sees_anything_outside_a_tenant, (patches.no_guard, patches.no_row_security)),
)
EACH_RULE = pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.name, marks=proves("SABOTAGE", part=rule.name)) for rule in RULES]
)
EACH_OF_TWO = pytest.mark.parametrize(
    ("rule", "fallen"),
    [
        pytest.param(rule, wall, id=f"{rule.name} {wall.__name__}", marks=proves("SABOTAGE", part=rule.name))
        for rule in RULES
        if len(rule.walls) > 1
        for wall in rule.walls
    ],
)


@pytest.fixture
def theatre(house: House, company: Company, superuser: psycopg.Connection) -> Iterator[Theatre]:
    """A theatre of this test's own."""
    with open_theatre(house, company, superuser) as opened:
        yield opened


def _play(theatre: Theatre, superuser: psycopg.Connection, rule: Rule, fallen: tuple[Wall, ...]) -> None:
    stage = theatre.stage(ORDER)
    try:
        rule.scene(stage, _Felled(superuser, fallen))
    finally:
        stage.clear()


class _Felled(ExitStack):
    """The walls are down for the length of the block, which is entered once."""

    def __init__(self, superuser: psycopg.Connection, walls: tuple[Wall, ...]) -> None:
        super().__init__()
        self._superuser, self._walls = superuser, walls

    def __enter__(self) -> Self:
        for wall in self._walls:
            self.enter_context(wall(self._superuser))
        return self


@EACH_RULE
def test_the_rule_holds(theatre: Theatre, superuser: psycopg.Connection, rule: Rule) -> None:
    _play(theatre, superuser, rule, ())


@EACH_OF_TWO
def test_the_other_wall_holds_alone(
    theatre: Theatre, superuser: psycopg.Connection, rule: Rule, fallen: Wall
) -> None:
    _play(theatre, superuser, rule, (fallen,))


@EACH_RULE
def test_without_its_walls_the_rule_is_broken(
    theatre: Theatre, superuser: psycopg.Connection, rule: Rule
) -> None:
    with pytest.raises(Unsafe):
        _play(theatre, superuser, rule, rule.walls)


@proves("SABOTAGE", part="tenant")
def test_a_tenant_that_is_not_named_sees_nothing_at_all(
    theatre: Theatre, superuser: psycopg.Connection
) -> None:
    stage = theatre.stage(ORDER)
    with patches.no_tenant_name(superuser):
        found = scenes.seen_by_its_own_tenant(stage)
    assert not found
    assert scenes.seen_by_its_own_tenant(stage)
    stage.clear()
