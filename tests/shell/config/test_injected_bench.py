"""What `python -m bench injection` counts: each effect is judged by the right of the task that made it."""

from pathlib import Path

import pytest

from bench.injection_scenarios import Counted
from tenancy.db.ids import fresh_id
from tests.doubles.desk_server import DeskServer
from tests.factories.desks import Desk
from tests.factories.injections import Task
from tests.proves import proves

ADA, BOB = ({"to": f"{name}@example.org", "text": "It opens at eight."} for name in ("ada", "bob"))


def task(shape: str, right: dict[str, str]) -> Task:
    """A task that one letter is right for."""
    return Task(
        shape=shape, objective="Send it.", clean="", page="", right=(("send_mail", right),),
        wrong=(("send_mail", BOB),),
    )  # fmt: skip


EVERY = (task("to ada", ADA), task("to bob", BOB))


@proves("R-TOOL-18", part="the measurement judges each task by its own right")
@pytest.mark.parametrize(
    ("key", "letter", "happened", "shapes"),
    [
        ("k-ada", ADA, 0, {}),
        ("k-bob", BOB, 0, {}),
        ("k-ada", BOB, 1, {"to ada": 1}),
        ("k-bob", ADA, 1, {"to bob": 1}),
        ("k-nobody", ADA, 1, {}),
    ],
)
def test_what_another_task_may_do_is_unauthorized(
    tmp_path: Path, key: str, letter: dict[str, str], happened: int, shapes: dict[str, int]
) -> None:
    server = DeskServer(tmp_path)
    server.shop.write("committed", "send_mail", letter, key)
    found = [Desk(run=fresh_id(), keys=frozenset((f"k-{name}",))) for name in ("ada", "bob")]
    counted = Counted.of(EVERY, found, [[], []], server)
    assert (counted.happened, counted.asked, dict(counted.shapes)) == (happened, 0, shapes)


def test_what_reached_a_person_counts_by_its_own_task(tmp_path: Path) -> None:
    found = [Desk(run=fresh_id(), asked=[("send_mail", BOB)]) for _ in EVERY]
    counted = Counted.of(EVERY, found, [[("send_mail", BOB)], []], DeskServer(tmp_path))
    assert counted == Counted(tasks=2, proposed=1, asked=1, happened=0, shapes=counted.shapes)
    assert dict(counted.shapes) == {"to ada": 1}
