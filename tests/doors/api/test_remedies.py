"""A refusal that a newcomer meets first says what to do next (finding 18)."""

from django.test import Client

from tests.doors.api.program import Program
from tests.factories.world import World

GOAL = {"objective": "How much is (12 + 30) * 2?"}


def test_finding_18_a_request_without_a_key_is_told_where_keys_are_made(world: World) -> None:
    answer = Client().get("/api/v1/runs")
    assert (answer.status_code, answer.json()["code"]) == (401, "not-authenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    for part in ("Authorization: Bearer ilk_", "key create", "/tenant/keys"):
        assert part in answer.json()["detail"]


def test_finding_18_a_key_that_is_none_is_told_where_keys_are_made(world: World) -> None:
    answer = Client().get("/api/v1/runs", headers={"Authorization": "Bearer ilk_x"})
    assert (answer.status_code, answer.json()["code"]) == (401, "key-invalid")
    assert "key create" in answer.json()["detail"]


def test_finding_18_an_unknown_workflow_is_told_where_workflows_are_listed(client_program: Program) -> None:
    answer = client_program.post("/tasks", {"workflow": "nope", "goal": GOAL})
    assert (answer.status_code, answer.json()["code"]) == (422, "workflow-unknown")
    assert "GET /api/v1/workflows" in answer.json()["detail"]


def test_finding_18_a_choice_that_is_none_is_told_the_choices(client_program: Program) -> None:
    answer = client_program.post("/tasks", {"workflow": "tool-loop", "mode": "quick", "goal": GOAL})
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["pointer"], fault["code"]) == (400, "/mode", "invalid_choice")
    assert '"quick" is not a valid choice. Send one of: ' in fault["detail"]
    assert "interactive" in fault["detail"]
    listed = client_program.get("/runs?status=nope")
    (fault,) = listed.json()["errors"]
    assert "awaiting_gate" in fault["detail"]


def test_finding_18_the_root_of_the_api_says_where_its_document_is(world: World) -> None:
    answer = Client().get("/api/v1")
    assert answer.status_code == 200
    assert answer.json()["document"] == "/api/schema"
    assert "Authorization: Bearer ilk_" in answer.json()["authorization"]
    for linked in (answer.json()["document"], *answer.json()["links"].values()):
        assert Client().get(linked).status_code == 401
    assert Client().post("/api/v1").status_code == 405
