"""A run through the tool loop with the scripted model."""

from tests.conftest import House
from tests.factories.world import make_world


def test_the_scripted_model_calls_tools_until_it_can_answer(house: House) -> None:
    world = make_world(house)
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    found = world.drive(run)
    assert (found.status, found.terminal_code) == ("completed", "SUCCESS")
    assert found.scripted
    assert "84" in str(world.result(run))
    world.sound(run)
