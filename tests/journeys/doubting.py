"""Runs that end while nobody knows whether their change happened."""

from uuid import UUID

from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer
from tests.factories.foreign import to_the_end
from tests.factories.world import World
from tests.journeys.test_open_effects import asked, kinds


def in_doubt(world: World, crm: Crm, model: OpenAIServer, *, made: bool = True) -> UUID:
    """A run that was cancelled when nobody knew whether its change had been made."""
    crm.drops, crm.makes, crm.times = True, made, 1
    run = asked(world, model)
    assert (kinds(world, run), crm.posts()) == (["reconciliation"], 1)
    assert to_the_end(world, run, "cancel").terminal_code == "USER_CANCEL"
    crm.makes = True
    return run
