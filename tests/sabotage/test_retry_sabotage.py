"""What keeps a retry from doing a thing twice, and from being allowed by whoever wanted it: with one wall
left, and with none (RING, R-SESS-9)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from unittest import mock
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError
from pytest_django import Settings

from approvals import actions as approving
from approvals.core.errors import NotYours
from approvals.models import Request
from approvals.queries.people import asked_of
from orchestrator.core.admission.errors import ChangedSince, LearntLate
from orchestrator.core.domain.manifest import Manifest
from orchestrator.decisions.queries import in_doubt_changes
from orchestrator.runs.queries import checkpoints as looking
from orchestrator.runs.queries.checkpoints import EndedRun
from tests.conftest import House
from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer, failing, said
from tests.factories.denied import POSTING, denied
from tests.factories.foreign import foreign, to_the_end
from tests.factories.retrying import checkpoints, retried
from tests.factories.world import World, company_at, make_world
from tests.journeys.interleaving.clock import Clock
from tests.proves import proves
from tests.sabotage.scenes import Unsafe, safe

Superuser = psycopg.Connection
Wall = Callable[[Superuser], AbstractContextManager[Any]]
LETTER = said("Dear Ada, 10.00 USD for order A-1001 is on its way back to you.")


# -- walls


def no_changes(_: Superuser) -> AbstractContextManager[Any]:
    """Nobody looks for what was decided after a checkpoint."""
    return mock.patch.object(EndedRun, "changes", [])


def no_deeds(_: Superuser) -> AbstractContextManager[Any]:
    """Nobody looks at how things stood in the end."""
    return mock.patch.object(looking, "otherwise_since", return_value=())


def no_ear(_: Superuser) -> AbstractContextManager[Any]:
    """Nobody looks for what was learnt too late."""
    return mock.patch.object(in_doubt_changes, "late_effects", return_value=frozenset())


def no_line(_: Superuser) -> AbstractContextManager[Any]:
    """Each run of a line is a stranger to the world outside."""
    return mock.patch.object(Manifest, "line", property(lambda self: self.run))


def no_rule(_: Superuser) -> AbstractContextManager[Any]:
    """The rule does not know who had the run begun again."""

    def forgetful(request: Request) -> Any:
        return asked_of(request).model_copy(update={"retriers": (), "retrier_owners": ()})

    return mock.patch.object(approving, "asked_of", forgetful)


@contextmanager
def no_trigger(superuser: Superuser) -> Iterator[None]:
    """The table takes anybody's decision."""
    superuser.execute("ALTER TABLE approvals_decision DISABLE TRIGGER decision_not_the_retriers")
    try:
        yield
    finally:
        superuser.execute("ALTER TABLE approvals_decision ENABLE TRIGGER decision_not_the_retriers")


# -- scenes


def a_refund_is_paid_once(stage: "Stage", sabotage: AbstractContextManager[Any]) -> None:
    """The run failed behind the refund; somebody wants to begin in front of it."""
    stage.model.play(failing(401, "Your key was revoked."))
    run = stage.refund()
    to_the_end(stage.world, run)
    record = next(
        one.record
        for one in checkpoints(stage.world, run)
        if one.next == "Checks the call of payments.refund"
    )
    stage.model.play(LETTER)
    with sabotage, suppress(ChangedSince):
        to_the_end(stage.world, retried(stage.world, run, record=record))
    safe(len(stage.company.effects("payments")) == 1, "the same money was paid back twice")


def a_posting_is_made_once(stage: "Stage", sabotage: AbstractContextManager[Any]) -> None:
    """Somebody said that the posting did not happen, and its company said later that it did."""
    with denied(stage.world, stage.company, stage.model, stage.clock) as (run, heard):
        heard()
        stage.world.drive(run)
    stage.model.play(POSTING, said("It is posted."))
    with sabotage, suppress(LearntLate):
        to_the_end(stage.world, retried(stage.world, run))
    safe(len(stage.company.effects("ledger")) == 1, "the same amount was posted twice")


def nobody_allows_what_they_began_again(stage: "Stage", sabotage: AbstractContextManager[Any]) -> None:
    """An approver has a run begun again, and says yes to what it asks."""
    stage.company.faults("policy", "refuse", times=1)
    run = stage.refund()
    to_the_end(stage.world, run)
    again = retried(stage.world, run, by=stage.world.people.approver)
    stage.world.drive(again)
    (request,) = stage.world.open_requests(again)
    with sabotage, suppress(NotYours, IntegrityError):
        stage.world.decide(request, stage.world.people.approver)
    safe(bool(stage.world.open_requests(again)), "they allowed it themselves")


class Stage(NamedTuple):
    """Where a scene is played."""

    world: World
    company: Company
    model: OpenAIServer
    clock: Clock

    def refund(self) -> UUID:
        """A refund of a part, of which the shop would pay several."""
        return self.world.submit(
            "support-refund", "Refund the order", inputs={"order_id": "A-1001", "amount": "10.00"}
        )


class Rule(NamedTuple):
    """A rule: the scene that would show its breach, and every wall that keeps it."""

    name: str
    scene: Callable[[Stage, AbstractContextManager[Any]], None]
    walls: tuple[Wall, ...]


RULES = (
    Rule("no action twice in a line", a_refund_is_paid_once, (no_changes, no_deeds, no_line)),
    Rule("learnt late", a_posting_is_made_once, (no_ear,)),
    Rule("retrier", nobody_allows_what_they_began_again, (no_rule, no_trigger)),
)
EACH_RULE = pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.name, marks=proves("SABOTAGE", part=rule.name)) for rule in RULES]
)
EACH_ALONE = pytest.mark.parametrize(
    ("rule", "standing"),
    [
        pytest.param(rule, wall, id=f"{rule.name} {wall.__name__}", marks=proves("SABOTAGE", part=rule.name))
        for rule in RULES
        for wall in rule.walls
    ],
)


@pytest.fixture
def stage(house: House, company: Company, settings: Settings, superuser: Superuser) -> Iterator[Stage]:
    """A furnished house with the demo company and a model of this test's."""
    with company_at(company.url), foreign(settings, OpenAIServer()) as model:
        yield Stage(make_world(house), company, model, Clock(superuser))


@contextmanager
def felled(superuser: Superuser, walls: tuple[Wall, ...]) -> Iterator[None]:
    """The walls are down for the length of the block."""
    with ExitStack() as stack:
        for wall in walls:
            stack.enter_context(wall(superuser))
        yield


@EACH_RULE
def test_the_rule_holds(stage: Stage, superuser: Superuser, rule: Rule) -> None:
    rule.scene(stage, felled(superuser, ()))


@EACH_ALONE
def test_each_wall_holds_alone(stage: Stage, superuser: Superuser, rule: Rule, standing: Wall) -> None:
    rule.scene(stage, felled(superuser, tuple(wall for wall in rule.walls if wall is not standing)))


@EACH_RULE
def test_without_its_walls_the_rule_is_broken(stage: Stage, superuser: Superuser, rule: Rule) -> None:
    with pytest.raises(Unsafe):
        rule.scene(stage, felled(superuser, rule.walls))
