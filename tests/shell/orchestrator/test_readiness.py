"""What nobody has set up is offered to no model, and the run says so (R-TOOL-6, R-TOOL-13)."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from orchestrator.actions.outside import set_outside
from orchestrator.core.manifest import Pins
from orchestrator.core.outside import MailServer
from orchestrator.core.readiness import Lack, Life, credential_lack
from orchestrator.models import ManifestRow, PinSet
from tenancy.context import tenant
from tests.conftest import House
from tests.factories.world import World, make_world
from tests.proves import proves
from traces.queries import payloads

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOON = AT + timedelta(minutes=5)


@pytest.fixture
def world(house: House) -> World:
    """A house in which nobody has set anything up."""
    return make_world(house)


def pins_of(world: World, run: UUID) -> Pins:
    """What a run is pinned to."""
    with tenant(world.id):
        pinned = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run)
        return Pins.model_validate_json(bytes(PinSet.objects.get(digest=pinned).body))


@proves("R-TOOL-13", part="a credential's life against the run's")
@pytest.mark.parametrize(
    ("life", "lack"),
    [
        (None, "gone"),
        (Life(None, False), ""),
        (Life(AT - timedelta(minutes=1), False), "gone"),
        (Life(AT - timedelta(minutes=1), True), ""),
        (Life(AT + timedelta(minutes=4), False), "soon"),
        (Life(AT + timedelta(minutes=4), True), ""),
        (Life(AT + timedelta(minutes=6), False), ""),
    ],
)
def test_a_credential_is_gone_ends_soon_or_lasts(life: Life | None, lack: str) -> None:
    found = credential_lack("crm", life, AT, SOON)
    assert [name for name, said in found._asdict().items() if said] == ([lack] if lack else [])
    assert found == Lack() or "crm" in "".join(found)


@proves("R-TOOL-6", part="what nobody has set up is not offered")
def test_a_model_is_offered_no_tool_that_nobody_has_set_up(world: World) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    held = pins_of(world, run)
    assert held.left_out["email.send"] == "no administrator has said from whom letters are"
    assert held.left_out["sql.query"] == "no database has a reader"
    assert "calculator.evaluate" not in held.left_out
    assert world.drive(run).terminal_code == "SUCCESS"
    asked = [said["request"] for said in world.said(run, "model_called")]
    with tenant(world.id):
        offered = b"".join(payloads(run, asked).values()).decode()
    assert "calculator.evaluate" in offered
    assert not [name for name in held.left_out if name in offered]
    world.sound(run)


@proves("R-TOOL-6", part="what was set up is offered from the next run on")
def test_a_sender_and_a_server_bring_the_letters_back(world: World) -> None:
    server = MailServer(sender="agent@house.example", host="mail.house.example")
    with tenant(world.id):
        set_outside(world.id, "mail", server, expected=None, by=None, reason="Ours")
    held = pins_of(world, world.submit("tool-loop", "How much is 1 + 1?"))
    assert "email.send" not in held.left_out
    assert "sql.write" in held.left_out
