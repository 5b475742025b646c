"""A password in a task is sealed before anything of the task is kept, and goes where it was meant to go with
a person's yes (R-SEC-4, R-TRACE-5, M16). Judged by what the service and the model's server received."""

from typing import Any

import orjson
import psycopg
import pytest
from pytest_django import Settings

from orchestrator.runs.models.run import Run
from orchestrator.runs.models.task import Task
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.idempotency import KeyReused
from tests.doubles.crm import Crm
from tests.doubles.http_server import Reply, Seen
from tests.doubles.openai_server import calls, said
from tests.factories.foreign import called, foreign, onwards
from tests.factories.servers import READS
from tests.factories.world import World
from tests.journeys.test_sealed_values import Scripted, change, rows_with, sent
from tests.proves import proves
from tests.shell.orchestrator.test_http_tools import TEXT, declare
from tests.shell.orchestrator.test_http_tools import crm as crm
from tests.shell.orchestrator.test_http_tools import world as world
from traces.core.sealed_references import REFERENCE

PASSWORD = "hunter2-of-ada"
GOALS: list[tuple[str, dict[str, Any]]] = [
    ("Change ada's password to the one given.", {"password": PASSWORD}),
    (f"Change ada's password, password={PASSWORD}", {}),
]


def with_reference(name: str, **more: str) -> Any:
    """A call with the reference that the model was shown in its `password`."""

    def reply(seen: Seen) -> Reply:
        found = REFERENCE.search(orjson.dumps(seen.document).decode())
        assert found is not None
        given = {key: value.replace("#", found[0]) for key, value in more.items()}
        return calls(called(name, **given))

    return reply


def asked(world: World, settings: Settings, model: Scripted, goal: tuple[str, dict[str, Any]]) -> Any:
    """A run of that goal, up to where it waits."""
    with foreign(settings, model):
        run = world.submit("tool-loop", goal[0], inputs=goal[1])
        onwards(world, run)
        for request in world.open_requests(run):
            assert request.sealed
            world.decide(request, world.people.approver)
            onwards(world, run)
    return run


@proves("R-SEC-4", part="a sensitive value of the task")
@proves("M16", part="a sensitive value of the task is in no prompt")
@pytest.mark.parametrize("goal", GOALS)
def test_a_password_of_the_task_reaches_the_tool_exactly_and_nothing_else(
    world: World, crm: Crm, settings: Settings, superuser: psycopg.Connection, goal: Any
) -> None:
    declare(world, change(crm))
    model = Scripted(with_reference("crm.change_password", person="ada", password="#"))
    run = asked(world, settings, model, goal)
    assert sent(crm) == [{"password": PASSWORD}]
    assert [one for one in model.received if "hunter2" in one] == []
    assert rows_with(superuser, str(run))
    assert rows_with(superuser, "hunter2") == []
    world.sound(run)


@proves("M16", part="a sensitive value of the task goes into no message")
def test_a_password_of_the_task_goes_into_no_message(world: World, crm: Crm, settings: Settings) -> None:
    declare(world, change(crm))
    model = Scripted(with_reference("crm.change_password", person="ada", password="x", note="it is #"))
    run = asked(world, settings, model, GOALS[0])
    assert sent(crm) == []
    refused = [one for one in world.said(run, "call_checked") if one["decision"] == "deny"]
    assert "a value of the task goes into a member of the same name" in refused[0]["detail"]


@proves("R-SEC-4", part="a sensitive value of the task needs a yes")
def test_a_read_that_takes_a_password_of_the_task_waits_for_a_yes(
    world: World, crm: Crm, settings: Settings
) -> None:
    given = {
        "name": "crm.log_in", "description": "Log in.", **READS,
        "input_schema": {"type": "object", "properties": {"password": TEXT}, "required": ["password"]},
        "request": {"method": "GET", "url": f"{crm.origin}/in", "query": {"key": "password"}},
    }  # fmt: skip
    declare(world, given)
    with foreign(settings, Scripted(with_reference("crm.log_in", password="#"))):
        run = world.submit("tool-loop", GOALS[0][0], inputs=GOALS[0][1])
        onwards(world, run)
        assert crm.seen == []
        (request,) = world.open_requests(run)
        assert request.sealed
        world.decide(request, world.people.approver)
        onwards(world, run)
    assert [one["path"] for one in crm.seen] == [f"/in?key={PASSWORD}"]


@proves("W1", part="a submission with a sensitive value")
def test_the_same_submission_is_known_again_though_nothing_kept_gives_the_value_away(
    world: World, settings: Settings
) -> None:
    with foreign(settings, Scripted(said("Done."))):
        first = world.submit("tool-loop", *GOALS[0][:1], inputs=GOALS[0][1], key="k1")
        assert world.submit("tool-loop", *GOALS[0][:1], inputs=GOALS[0][1], key="k1") == first
        with pytest.raises(KeyReused):
            world.submit("tool-loop", *GOALS[0][:1], inputs={"password": "another"}, key="k1")
    with tenant_transaction(world.id):
        task = Task.objects.get(id=Run.objects.get(id=first).task_id)
        assert REFERENCE.search(bytes(task.goal).decode())
