"""A service that made a change, answered nothing, and answers oddly when it is asked about it."""

from typing import Any

import pytest

from tests.doubles.crm import Crm
from tests.doubles.openai_server import OpenAIServer, said
from tests.factories.foreign import to_the_end
from tests.factories.world import World
from tests.journeys.test_open_effects import LOOKUP, adds, asked, kinds
from tests.journeys.test_open_effects import crm as crm
from tests.journeys.test_open_effects import model as model
from tests.journeys.test_open_effects import world as world
from tests.proves import proves

# Answers that do not say what stands where the change would be.
ODD: dict[str, Any] = {
    "another member": {"error": "It failed."}, "nothing": b"", "no object": [], "null": b"null",
    "text": b'"none"', "no json": b"<html>", "half": b'{"notes": [',
    "large": b'{"notes": []}' + b" " * 900_000, "an entry of nothing": {"notes": [None]},
}  # fmt: skip
# Those that do.
PLAIN: dict[str, Any] = {"empty": {"notes": []}, "null": {"notes": None}, "false": {"notes": False}}


@proves("R-TOOL-9", part="a look-up whose answer cannot be read says nothing")
@pytest.mark.parametrize("lists", ODD.values(), ids=ODD)
def test_a_change_is_not_sent_again_after_a_look_up_that_cannot_be_read(
    world: World, crm: Crm, model: OpenAIServer, lists: Any
) -> None:
    adds(world, crm, timeout_ms=1_500, recovery="lookup", lookup=LOOKUP, conclusive=True)
    crm.drops, crm.times, crm.lists = True, 1, lists
    run = asked(world, model, said("Done."))
    assert (crm.posts(), kinds(world, run)) == (1, ["reconciliation"])
    assert to_the_end(world, run, "happened").terminal_code == "SUCCESS"
    assert len(crm.notes) == 1
    world.sound(run)


@proves("R-TOOL-9", part="a conclusive look-up that says that nothing is there")
@pytest.mark.parametrize("lists", PLAIN.values(), ids=PLAIN)
def test_a_change_is_sent_again_after_a_look_up_that_says_that_it_is_not_there(
    world: World, crm: Crm, model: OpenAIServer, lists: Any
) -> None:
    adds(world, crm, timeout_ms=1_500, recovery="lookup", lookup=LOOKUP, conclusive=True)
    crm.drops, crm.makes, crm.times, crm.lists = True, False, 1, lists
    run = asked(world, model, said("Done."))
    assert (crm.posts(), kinds(world, run)) == (2, [])
    world.sound(run)
