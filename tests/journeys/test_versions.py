"""A run outlives the code it was admitted under (R-SESS-13); its replay needs no world (R-TRACE-6)."""

from typing import Any

import orjson
import pytest
from pytest_django import Settings

from orchestrator.core.common.run_status import Status
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.machine import CORE_VERSION
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.runs.models.run import Intent, ManifestRow, RunSignal
from orchestrator.runs.queries.replays import replay_stored_run
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.world import World, company_at, fresh_worker, make_world
from tests.proves import proves
from traces.core.canonical import canonical_model
from traces.models import Event, Payload, Record, Snapshot


@proves("R-SESS-13", part="a run of an older version is carried on")
def test_a_run_admitted_under_older_code_is_carried_on(
    house: House, company: Company, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = settings.INTERLOCK_VERSION
    with company_at(company.url):
        world = make_world(house)
        with monkeypatch.context() as older:
            settings.INTERLOCK_VERSION = "0.0.1"
            for module in ("runs.actions.submit", "runs.actions.run_creation", "commit.write_phase"):
                older.setattr(f"orchestrator.{module}.CORE_VERSION", 0)
            run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
            assert world.drive(run).status == "awaiting_gate"
        settings.INTERLOCK_VERSION = now
        found = World(house=house, worker=fresh_worker()).approve_all(run)
    assert (found.status, found.terminal_code) == ("completed", "SUCCESS"), found.reason
    assert len(company.effects("payments")) == 1
    with tenant_transaction(world.id):
        bodies = Record.objects.filter(run_id=run).order_by("number").values_list("body", flat=True)
        cores = [orjson.loads(bytes(body))["core"] for body in bodies]
        manifest = orjson.loads(bytes(ManifestRow.objects.get(id=run).body))
    assert (cores[0], cores[-1]) == (0, CORE_VERSION)
    assert cores == sorted(cores)
    assert manifest["code_version"] == "0.0.1"
    world.sound(run)


@proves("R-SESS-13", part="the state's schema only grows")
def test_a_state_without_a_newer_field_is_read_as_it_was() -> None:
    state = RunState(position="intake", limits={}, status=Status.IN_PROGRESS)
    written = orjson.loads(canonical_model(state))
    for name, field in RunState.model_fields.items():
        older = {key: value for key, value in written.items() if key != name}
        if not field.is_required():
            read = RunState.model_validate(older)
            assert getattr(read, name) == field.get_default(call_default_factory=True)
    assert {name for name, field in RunState.model_fields.items() if field.is_required()} == {
        "position",
        "limits",
    }


def rows(world: World, run: Any) -> list[int]:
    """How much is written about a run."""
    with tenant_transaction(world.id):
        return [
            table.objects.filter(run_id=run).count()
            for table in (Event, Record, Snapshot, Payload, Intent, RunSignal)
        ]


@proves("R-TRACE-6", part="no model, no tool, no trace of its own")
def test_a_replay_derives_the_whole_run_from_what_was_recorded(
    house: House, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    with company_at(company.url):
        world = make_world(house)
        run = world.submit("support-refund", "Refund the order", inputs={"order_id": "A-1001"})
        (request,) = (world.drive(run), world.open_requests(run))[1]
        asked = orjson.loads(orjson.loads(bytes(request.packet))["arguments"])
        world.decide(request, world.people.approver, "edit", arguments=asked | {"amount": "10.00"})
        ended = world.approve_all(run)
        assert ended.terminal_code == "SUCCESS"
        requests, before = len(company.requests()), rows(world, run)

        def refuse(*_: object, **__: object) -> None:
            message = "a replay asked something of the world"
            raise AssertionError(message)

        for name in ("submit", "run"):
            monkeypatch.setattr(EffectLoop, name, refuse)
        report = replay_stored_run(world.id, run)
        assert (report.matches, report.records, report.what_if) == (True, ended.record_number, False)
        assert (len(company.requests()), rows(world, run)) == (requests, before)
