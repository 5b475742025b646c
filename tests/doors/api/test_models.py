"""The models that runs are played by, for programs (R-API-2, R-TOOL-22)."""

from typing import Any

import pytest
from pytest_django import Settings

from orchestrator.llm.queries import profiles_now
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import keep_secret
from tests.doors.api.program import Program, pointers, program, refusal
from tests.factories.world import World
from tests.proves import proves

MODELS = "/model-profiles"
MAIN: dict[str, Any] = {
    "name": "main", "provider": "openai", "model": "gpt-5.4", "roles": ["executor"], "reason": "Ours",
    "secret": "openai",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _key(world: World) -> None:
    """The key that the provider wants."""
    keep_secret(world.id, "openai", "sk-0123456789", origin="https://api.openai.com", by=None)


def agreed(world: World, asked: Any) -> Any:
    """What waits, agreed to by somebody else."""
    assert (asked.status_code, asked.json()["kind"]) == (202, "models"), asked.content
    second = program(world.id, Role.ADMIN)
    return second.post(f"/tool-proposals/{asked.json()['id']}/agree", {"reason": "Seen it"})


@proves("R-TOOL-22", part="model profiles by API")
def test_a_program_names_changes_and_takes_out_a_model(admin: Program, world: World) -> None:
    assert admin.get(MODELS).json() == {"results": [], "version": 0, "reason": "", "at": None}
    waiting = admin.post(MODELS, {**MAIN, "max_output_tokens": 900})
    assert waiting.json()["weaker"] == ["Prompts go to main: gpt-5.4 at https://api.openai.com/v1."]
    assert agreed(world, waiting).status_code == 200
    (row,) = admin.get(MODELS).json()["results"]
    assert (row["own"], row["key"], row["circuit"], row["price"]["origin"]) == (
        True, "secret", "closed", "genai-prices",
    )  # fmt: skip
    with tenant_transaction(world.id):
        (profile,) = profiles_now("tool_loop", database_now())
    assert (profile.name, profile.max_output_tokens, profile.roles) == ("main", 900, ("executor",))
    changed = admin.send("patch", f"{MODELS}/main", {"max_retries": 4, "reason": "Flaky"})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    one = admin.get(f"{MODELS}/main")
    assert (one.json()["max_retries"], one.json()["max_output_tokens"], one["ETag"]) == (4, 900, '"2"')
    gone = admin.post(f"{MODELS}/main/remove", {"reason": "Enough"})
    assert (gone.status_code, gone.json()["results"], gone.json()["version"]) == (200, [], 3)
    assert refusal(admin.get(f"{MODELS}/main")) == (404, "not-found")


def test_what_is_wrong_is_named_and_changes_nothing(admin: Program, world: World) -> None:
    for wrong, pointer in (
        ({"name": "Main"}, "/name"),
        ({"roles": ["king"]}, "/roles/0"),
        ({"roles": []}, "/roles"),
        ({"cheaper": "none"}, "/cheaper"),
        ({"failover": ["house", "none"]}, "/failover/1"),
        ({"secret": "none"}, "/secret"),
        ({"secret": ""}, "/secret"),
        ({"at_once": 0}, "/at_once"),
        ({"price": {"input_usd_per_mtok": "1"}}, "/price/output_usd_per_mtok"),
        ({"base_url": "https://93.184.216.34/v1", "secret": "", "model": "house-7b"}, "/price"),
        ({"base_url": "http://10.0.0.1/v1"}, "/base_url"),
        ({"timeout_ms": 1}, "/timeout_ms"),
        ({"api_key": "sk-1"}, "/api_key"),
    ):
        refused = admin.post(MODELS, {**MAIN, **wrong})
        assert (refused.status_code, pointers(refused)) == (400, [pointer]), wrong
    assert admin.get(MODELS).json()["version"] == 0
    agreed(world, admin.post(MODELS, MAIN))
    assert pointers(admin.post(MODELS, MAIN)) == ["/name"]
    late = admin.send("patch", f"{MODELS}/main", {"model": "b", "reason": "x"}, headers={"If-Match": '"0"'})
    assert refusal(late) == (412, "stale")
    assert refusal(admin.send("patch", f"{MODELS}/other", {"model": "b", "reason": "x"})) == (
        404,
        "not-found",
    )
    assert refusal(admin.post(f"{MODELS}/other/remove", {"reason": "x"})) == (404, "not-found")


def test_a_model_that_another_one_names_is_not_taken_out(admin: Program, world: World) -> None:
    agreed(world, admin.post(MODELS, MAIN))
    second = {**MAIN, "name": "second", "roles": [], "model": "gpt-5.4-mini"}
    agreed(world, admin.post(MODELS, second))
    named = admin.send(
        "patch", f"{MODELS}/main", {"failover": ["second"], "cheaper": "second", "reason": "x"}
    )
    assert agreed(world, named).status_code == 200
    assert pointers(admin.post(MODELS, second)) == ["/name"]
    refused = admin.post(f"{MODELS}/second/remove", {"reason": "x"})
    assert pointers(refused) == ["/profiles/0/cheaper", "/profiles/0/failover/0"]


@proves("R-TOOL-22", part="the operator's models beside one's own")
def test_the_operators_models_are_shown_and_play_what_is_left(
    admin: Program, world: World, settings: Settings
) -> None:
    settings.ANTHROPIC_API_KEY = "sk-operator-0123456789"
    (row,) = admin.get(MODELS).json()["results"]
    assert (row["own"], row["key"], row["provider"]) == (False, "operator", "anthropic")
    agreed(world, admin.post(MODELS, {**MAIN, "failover": ["house"]}))
    mine, theirs = admin.get(MODELS).json()["results"]
    assert (mine["name"], mine["roles"], mine["failover"]) == ("main", ["executor"], [theirs["name"]])
    assert "executor" not in theirs["roles"]
    assert "planner" in theirs["roles"]
    assert "sk-operator" not in admin.get(MODELS).content.decode()
    settings.INTERLOCK_MODEL = "scripted"
    assert admin.get(MODELS).json()["results"] == []
