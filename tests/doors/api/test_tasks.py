"""POST /tasks: what is accepted, what is refused by which field, and what a repetition does."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from orchestrator.runs.models.run import Run
from orchestrator.runs.models.task import Task
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import IdempotencyKey
from tests.doors.api.program import Program, pointers, refusal
from tests.factories.world import World
from tests.proves import proves

GOAL = {"objective": "How much is (12 + 30) * 2?"}
BODY = {"workflow": "tool-loop", "goal": GOAL}
LONG = "x" * 20_001
FRACTION = {"validator": "v", "parameters": {"n": 1.5}}
FULL = {
    "workflow": "tool-loop",
    "goal": {
        **GOAL,
        "constraints": ["in whole numbers"],
        "inputs": {"a": None, "b": [1, {"c": "ü"}]},
        "output_schema": None,
        "deadline": "2099-01-01T00:00:00Z",
        "done_condition": "",
        "stop_rules": [],
        "requires_human_approval": False,
    },
    "mode": "interactive",
    "boundary": "tool-loop-default",
    "budget": {"cost_usd": "0.5", "tool_calls": 3},
    "metadata": {"ticket": {"number": 7}},
}


def counted(world: World) -> tuple[int, int]:
    """How many tasks and runs the tenant has."""
    with tenant_transaction(world.id):
        return Task.objects.count(), Run.objects.count()


@proves("R-API-2", part="POST /tasks")
@pytest.mark.parametrize("body", [BODY, FULL], ids=["least", "most"])
def test_a_task_is_accepted_with_its_first_run(
    world: World, client_program: Program, body: dict[str, Any]
) -> None:
    answer = client_program.post("/tasks", body)
    said = answer.json()
    assert (answer.status_code, said["run"]["status"]) == (202, "queued")
    run = f"/api/v1/runs/{said['run']['id']}"
    assert said["links"] == {
        "run": run, "events": f"{run}/events", "plan": f"{run}/plan", "result": f"{run}/result",
        "trace": f"{run}/trace",
    }  # fmt: skip
    assert client_program.get(run).json()["task"] == said["id"]
    assert world.drive(UUID(said["run"]["id"])).terminal_code == "SUCCESS"


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@proves("W2", part="odd and well formed")
@pytest.mark.parametrize(
    "inputs",
    [
        {"amount": 12.5, "tiny": 1e-7, "whole": 2.0, "deep": {"x": [-0.5]}},
        {"": "", "a.b": 1, "a/b~c": {"": None}, "\u2028": "\U0001f600", "__proto__": {}},
        {"deep": nested(59)},
        {"largest": 2**53, "least": -(2**53)},
    ],
    ids=["fractions", "names", "depth", "numbers"],
)
def test_odd_inputs_are_kept_and_the_run_stays_sound(
    world: World, client_program: Program, inputs: dict[str, Any]
) -> None:
    answer = client_program.post("/tasks", BODY | {"goal": GOAL | {"inputs": inputs}, "metadata": inputs})
    run = UUID(answer.json()["run"]["id"])
    assert world.drive(run).terminal_code == "SUCCESS"
    world.sound(run)


def changed(**more: Any) -> dict[str, Any]:
    """The least body with fields of its goal or its own changed (`goal_` before the goal's)."""
    goal = {name[5:]: value for name, value in more.items() if name.startswith("goal_")}
    own = {name: value for name, value in more.items() if not name.startswith("goal_")}
    return {"workflow": "tool-loop", "goal": {**GOAL, **goal}, **own}


MALFORMED: list[tuple[Any, int, str]] = [
    ([], 400, ""),
    ("x", 400, ""),
    (7, 400, ""),
    ({"goal": GOAL}, 400, "/workflow"),
    ({"workflow": "tool-loop"}, 400, "/goal"),
    ({"workflow": "tool-loop", "goal": {}}, 400, "/goal/objective"),
    (changed(workflow=""), 400, "/workflow"),
    (changed(workflow=None), 400, "/workflow"),
    (changed(workflow=5), 400, "/workflow"),
    (changed(workflow=["tool-loop"]), 400, "/workflow"),
    (changed(workflow="w" * 65), 400, "/workflow"),
    (changed(workflow="nowhere"), 422, "/workflow"),
    ({"workflow": "tool-loop", "goal": "do it"}, 400, "/goal"),
    ({"workflow": "tool-loop", "goal": None}, 400, "/goal"),
    (changed(goal_objective=""), 400, "/goal/objective"),
    (changed(goal_objective="  "), 400, "/goal/objective"),
    (changed(goal_objective=7), 400, "/goal/objective"),
    (changed(goal_objective=LONG), 400, "/goal/objective"),
    (changed(goal_acceptance="none"), 400, "/goal/acceptance"),
    (changed(goal_acceptance=[{}]), 400, "/goal/acceptance/0/validator"),
    (changed(goal_acceptance=[{"validator": "v", "weight": 1}]), 400, "/goal/acceptance/0/weight"),
    (changed(goal_acceptance=[FRACTION]), 400, "/goal/acceptance/0/parameters/n"),
    (changed(goal_acceptance=[{"validator": "v"}] * 51), 400, "/goal/acceptance"),
    (changed(goal_constraints=["ok", 5]), 400, "/goal/constraints/1"),
    (changed(goal_constraints={}), 400, "/goal/constraints"),
    (changed(goal_constraints=["c"] * 51), 400, "/goal/constraints"),
    (changed(goal_inputs=[]), 400, "/goal/inputs"),
    (changed(goal_inputs=None), 400, "/goal/inputs"),
    (changed(goal_output_schema="object"), 400, "/goal/output_schema"),
    (changed(goal_output_schema={"type": "nonsense"}), 422, "/goal/output_schema"),
    (changed(goal_output_schema={"pattern": "("}), 422, "/goal/output_schema"),
    (changed(goal_output_schema={"$ref": "https://schemas.example/a"}), 422, "/goal/output_schema"),
    (changed(goal_output_schema={"items": {"$ref": "file:///etc/passwd"}}), 422, "/goal/output_schema"),
    (changed(goal_output_schema={"$ref": "#/$defs/absent"}), 422, "/goal/output_schema"),
    (changed(goal_output_schema={"$schema": "https://schemas.example/m"}), 422, "/goal/output_schema"),
    (changed(goal_done_condition=5), 400, "/goal/done_condition"),
    (changed(goal_validation_method=[]), 400, "/goal/validation_method"),
    (changed(goal_stop_rules="never"), 400, "/goal/stop_rules"),
    (changed(goal_stop_rules=["s"] * 21), 400, "/goal/stop_rules"),
    (changed(goal_deadline="tomorrow"), 400, "/goal/deadline"),
    (changed(goal_deadline=1_800_000_000), 400, "/goal/deadline"),
    (changed(goal_requires_human_approval="yes"), 400, "/goal/requires_human_approval"),
    (changed(goal_requires_human_approval=1), 400, "/goal/requires_human_approval"),
    (changed(goal_owner="me"), 400, "/goal/owner"),
    (changed(mode="fast"), 400, "/mode"),
    (changed(mode=None), 400, "/mode"),
    (changed(mode="long_running", boundary="nowhere"), 422, "/boundary"),
    (changed(boundary=5), 400, "/boundary"),
    (changed(boundary=""), 400, "/boundary"),
    (changed(budget=5), 400, "/budget"),
    (changed(budget={"cost_usd": 0.5}), 400, "/budget/cost_usd"),
    (changed(budget={"cost_usd": "-1"}), 400, "/budget/cost_usd"),
    (changed(budget={"cost_usd": "1e3"}), 400, "/budget/cost_usd"),
    (changed(budget={"cost_usd": "NaN"}), 400, "/budget/cost_usd"),
    (changed(budget={"cost_usd": True}), 400, "/budget/cost_usd"),
    (changed(budget={"cost_usd": None}), 400, "/budget/cost_usd"),
    (changed(budget={"cost_usd": "999999"}), 422, "/budget/cost_usd"),
    (changed(budget={"patience": 1}), 422, "/budget/patience"),
    (changed(metadata="m"), 400, "/metadata"),
    (changed(limits={"cost_usd": "1"}), 400, "/limits"),
]  # fmt: skip


@proves("R-SEC-7", part="a malformed task names its field and changes nothing")
def test_each_malformed_field_is_named_and_nothing_is_started(world: World, client_program: Program) -> None:
    before = counted(world)
    wrong = []
    for body, status, pointer in MALFORMED:
        answer = client_program.post("/tasks", body)
        found = refusal(answer)[0], pointers(answer)
        if found != (status, [pointer]):
            wrong.append((str(body)[:120], found))
    assert wrong == []
    assert counted(world) == before


@proves("R-SEC-7", part="every fault at once")
def test_several_faults_are_named_together(client_program: Program) -> None:
    answer = client_program.post("/tasks", {"workflow": 1, "goal": {"objective": 2, "more": 3}, "budgets": 4})
    assert sorted(pointers(answer)) == ["/budgets", "/goal/more", "/goal/objective", "/workflow"]


@proves("W1", part="the same key and body at the door")
def test_the_same_key_and_body_is_one_task_answered_the_same(world: World, client_program: Program) -> None:
    first, again = (client_program.post("/tasks", BODY, once="k-1") for _ in range(2))
    assert first.json() == again.json()
    assert (first.status_code, again.status_code) == (202, 202)
    assert (first.get("Idempotent-Replay"), again["Idempotent-Replay"]) == (None, "true")
    assert counted(world) == (1, 1)


@proves("W1", part="another body at the door")
def test_the_same_key_with_another_body_is_422(world: World, client_program: Program) -> None:
    client_program.post("/tasks", BODY, once="k-1")
    answer = client_program.post("/tasks", FULL, once="k-1")
    assert refusal(answer) == (422, "idempotency-key-reused")
    assert counted(world) == (1, 1)


OTHERS: dict[str, dict[str, Any]] = {
    "objective": changed(goal_objective="How much is 1 + 1?"),
    "workflow": changed(workflow="support-refund"),
    "boundary": changed(boundary="support"),
    "budget": changed(budget={"cost_usd": "0.4"}),
    "metadata": changed(metadata={"ticket": 8}),
    "mode": changed(mode="interactive"),
}


@proves("R-GRAPH-14", part="another body after a death")
@pytest.mark.parametrize("name", OTHERS)
def test_a_key_whose_answer_was_never_kept_still_stands_for_its_body(
    world: World, client_program: Program, name: str
) -> None:
    body = BODY | {"budget": {"cost_usd": "0.5"}}
    first = client_program.post("/tasks", body, once="k-1")
    with tenant_transaction(world.id):
        IdempotencyKey.objects.all().delete()
    answer = client_program.post("/tasks", body | OTHERS[name], once="k-1")
    assert refusal(answer) == (422, "idempotency-key-reused")
    again = client_program.post("/tasks", BODY | {"budget": {"cost_usd": "0.50"}}, once="k-1")
    assert again.json()["id"] == first.json()["id"]
    assert counted(world) == (1, 1)


@proves("W1", part="in parallel at the door")
def test_the_same_post_at_the_same_time_is_one_task(world: World, client_program: Program) -> None:
    def post(_: int) -> int:
        try:
            status: int = Program(clear=client_program.clear).post("/tasks", BODY, once="k-1").status_code
            return status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(post, range(8)))
    assert 202 in statuses
    assert statuses <= {202, 409}
    assert counted(world) == (1, 1)


@proves("W1", part="a refusal leaves no mark")
def test_a_refused_post_can_be_mended_under_its_key(world: World, client_program: Program) -> None:
    assert client_program.post("/tasks", changed(workflow="nowhere"), once="k-1").status_code == 422
    assert client_program.post("/tasks", BODY, once="k-1").status_code == 202
    assert counted(world) == (1, 1)


@proves("W1", part="a key of one principal")
def test_one_programs_key_says_nothing_to_another(
    world: World, client_program: Program, operator: Program
) -> None:
    ids = {who.post("/tasks", BODY, once="k-1").json()["id"] for who in (client_program, operator)}
    assert len(ids) == 2
    assert counted(world) == (2, 2)
