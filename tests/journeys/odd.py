"""Changes that are made and answered oddly, whatever sort of tool makes them: what must hold of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from orchestrator.core.common.errors import OrchestratorError
from orchestrator.runs.queries.runs import state_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doubles.openai_server import OpenAIServer, said
from tests.factories.denied import DOWN
from tests.factories.foreign import onwards, to_the_end
from tests.factories.retrying import retried
from tests.factories.world import World
from tests.journeys.test_open_effects import kinds, told


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Whoever makes the change: the goal that names it, what the model asks for, how often it came there, and
    how it is made to answer well again."""

    world: World
    model: OpenAIServer
    tool: str
    goal: str
    ask: Any
    made: Callable[[], int]
    calm: Callable[[], None]


def begun(service: Service, *then: Any) -> UUID:
    """A run whose model asks for the change, and then says this."""
    service.model.play(service.ask, *then)
    run = service.world.submit("tool-loop", service.goal)
    onwards(service.world, run)
    return run


def made_once_at_the_first_call(service: Service) -> None:
    """The change that a run makes without a question is made once, whatever comes of it."""
    _made_once(service, begun(service, DOWN))


def made_once_after_a_yes(service: Service) -> None:
    """The change that a person agreed to is made once, whatever comes of it."""
    run = begun(service, DOWN)
    (request,) = service.world.open_requests(run)
    assert (request.kind, service.made()) == ("action", 0)
    service.world.decide(request, service.world.people.approver)
    onwards(service.world, run)
    _made_once(service, run)


def _made_once(service: Service, run: UUID) -> None:
    assert service.made() == 1
    assert is_in_doubt(service.world, run)
    settled_once(service, run)


def settled_once(service: Service, run: UUID) -> None:
    """The change that was made and answered oddly is not made again by any way on but a person's word."""
    world, made = service.world, service.made()
    if kinds(world, run) == ["reconciliation"]:
        to_the_end(world, run, "cancel")
        service.calm()
        with pytest.raises(OrchestratorError):
            retried(world, run)
    else:
        assert [one["tool"] for one in world.result(run)["open_effects"]] == [service.tool], told(
            service.model
        )
        service.calm()
        service.model.play(service.ask, said("Done."))
        again = retried(world, run)
        onwards(world, again)
        assert kinds(world, again) == ["reconciliation"]
        assert to_the_end(world, again, "happened").terminal_code == "SUCCESS"
        world.sound(again)
    assert service.made() == made
    world.sound(run)


def is_in_doubt(world: World, run: UUID) -> bool:
    """True if anything is noted of a change of which nobody knows."""
    with tenant_transaction(world.id):
        state = state_now(run)
    return bool(state.opened) or any(deed.standing in ("in_doubt", "open") for deed in state.deeds.values())
