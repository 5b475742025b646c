"""What nobody has set up is offered to no model, and the run says so (R-TOOL-6, R-TOOL-13)."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from orchestrator.core.domain.manifest import Pins
from orchestrator.core.domain.tool_spec import HttpRequest, Remote
from orchestrator.core.tools.readiness import CredentialProblem, Life, credential_lack
from orchestrator.publishing.actions.versions import active_tools
from orchestrator.publishing.models import PinSet
from orchestrator.runs.models.run import ManifestRow
from orchestrator.tools.actions.destinations import set_mail
from orchestrator.tools.gateways.availability import assess_tool_readiness
from orchestrator.tools.models.tool_server import ToolServer
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import keep_secret
from tests.doors.pages.people import at, text
from tests.factories.world import World
from tests.proves import proves
from traces.queries import load_payloads

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOON = AT + timedelta(minutes=5)
MINUTE = timedelta(minutes=1)


def pins_of(world: World, run: UUID) -> Pins:
    """What a run is pinned to."""
    with tenant_transaction(world.id):
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
    assert found == CredentialProblem() or "crm" in "".join(found)


@proves("R-TOOL-6", part="what nobody has set up is not offered")
def test_a_model_is_offered_no_tool_that_nobody_has_set_up(world: World) -> None:
    run = world.submit("tool-loop", "How much is (12 + 30) * 2?")
    held = pins_of(world, run)
    assert held.left_out["email.send"] == "no administrator has said from whom letters are"
    assert held.left_out["sql.query"] == "no database has a reader"
    assert "calculator.evaluate" not in held.left_out
    assert world.drive(run).terminal_code == "SUCCESS"
    asked = [said["request"] for said in world.said(run, "model_called")]
    with tenant_transaction(world.id):
        offered = b"".join(load_payloads(run, asked).values()).decode()
    assert "calculator.evaluate" in offered
    assert not [name for name in held.left_out if name in offered]
    world.sound(run)


@proves("R-TOOL-6", part="what was set up is offered from the next run on")
def test_a_sender_and_a_server_bring_the_letters_back(world: World) -> None:
    server = {"sender": "agent@house.example", "host": "203.0.114.8"}
    set_mail(world.id, server, expected=None, by=None, reason="Ours")
    held = pins_of(world, world.submit("tool-loop", "How much is 1 + 1?"))
    assert "email.send" not in held.left_out
    assert "sql.write" in held.left_out


def test_a_workflow_of_fixed_calls_begins_without_what_its_tools_need(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLOCK_DEMO_URL", "")
        patch.setattr("django.conf.settings.INTERLOCK_DEMO_URL", "", raising=False)
        run = world.submit("support-refund", "Refund something")
        assert "orders.lookup" in pins_of(world, run).left_out
        world.drive(run)
        (asked,) = world.open_requests(run)
    assert asked.kind == "clarification"


@proves("R-TOOL-13", part="an expired credential is said at admission")
def test_a_tool_with_an_expired_secret_is_left_out_and_one_that_ends_soon_is_named(world: World) -> None:
    request = HttpRequest(method="GET", url="https://crm.example/v1/notes", secret="crm")
    with tenant_transaction(world.id):
        now = database_now()
        held = active_tools()["calculator.evaluate"]
        remote = Remote(kind="http", origin="https://crm.example", request=request)
        crm = held.evolve(name="crm.find", local=False, remote=remote)
        assert assess_tool_readiness([crm], now, now + MINUTE).left_out == {
            "crm.find": "its secret crm is not kept any more"
        }
    keep_secret(world.id, "crm", "s", origin="https://crm.example", by=None, expires_at=now + MINUTE)
    with tenant_transaction(world.id):
        assert "before a run" in assess_tool_readiness([crm], now, now + 2 * MINUTE).cautions["crm.find"]
        assert (
            "expired at"
            in assess_tool_readiness([crm], now + 2 * MINUTE, now + 3 * MINUTE).left_out["crm.find"]
        )


@proves("R-TOOL-6", part="the run's page says what was left out")
def test_the_pages_say_which_tools_a_run_has_not_got_and_why(world: World) -> None:
    run = world.submit("tool-loop", "How much is 1 + 1?")
    who = at(world.people.operator)
    page = text(who.get(f"/runs/{run}"))
    assert "Tools it has not got" in page
    assert "no administrator has said from whom letters are" in page
    assert "no database has a reader" in text(who.get("/tools/sql.query"))
    assert "no database has a reader" in text(who.get("/tools"))


@proves("R-TOOL-13", part="the secret of a tool server, on its pages")
def test_a_server_whose_secret_ends_says_so_before_and_after(world: World) -> None:
    admin = at(world.people.admin)
    with tenant_transaction(world.id):
        now = database_now()
        ToolServer.objects.create(
            tenant_id=world.id, slug="notes", kind="http", address="https://notes.example/mcp",
            origin="https://notes.example", secret="notes", secret_header="Authorization", created_at=now,
        )  # fmt: skip
    assert "The secret of this server is missing" in text(admin.get("/mcp-servers/notes"))
    lives = ((timedelta(days=2), "Its secret ends", "Ends soon"), (-MINUTE, "has expired", "Expired"))
    for life, said, chip in lives:
        keep_secret(world.id, "notes", "s", origin="https://notes.example", by=None, expires_at=now + life)
        assert said in text(admin.get("/mcp-servers/notes"))
        assert chip in text(admin.get("/mcp-servers"))
