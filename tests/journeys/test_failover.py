"""One provider cannot be asked, and another one of another protocol takes over in the midst of a run."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from budgets.models import Entry
from orchestrator.core.common.goal import Mode
from orchestrator.llm.gateways import catalog
from orchestrator.llm.gateways.client import subject_of
from orchestrator.llm.models import ModelTurn
from orchestrator.outbound.actions import TenantCircuits
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.state_loader import pins_of
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles import anthropic_server as anthropic
from tests.doubles.company import Company
from tests.doubles.openai_server import Call, OpenAIServer, calls, failing
from tests.factories.foreign import foreign, onwards
from tests.factories.world import World, company_at, make_world
from tests.proves import proves

LOOK = Call("orders_lookup", {"order_id": "A-1001"}, "call_a")


@pytest.fixture
def first(settings: Settings) -> Iterator[OpenAIServer]:
    """The provider that new runs are pinned to."""
    with foreign(settings, OpenAIServer()) as server:
        yield server


@pytest.fixture
def world(
    house: House,
    company: Company,
    settings: Settings,
    first: OpenAIServer,
    anthropic_server: anthropic.AnthropicServer,
) -> Iterator[World]:
    """A tenant whose operator has keys for two providers."""
    settings.ANTHROPIC_BASE_URL, settings.ANTHROPIC_API_KEY = anthropic_server.url, "key"
    settings.INTERLOCK_MODEL = "openai:loopback"
    with company_at(company.url):
        yield make_world(house)


def taken_over(world: World, run: Run) -> list[tuple[str, str, int]]:
    """To whom, why, after how many attempts."""
    return [(one["to"].split(":")[0], one["reason"], one["attempts"]) for one in _moves(world, run)]


def _moves(world: World, run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.said(run.id, "model_failed_over")
    return found


@proves("R-TOOL-22", part="failover in the midst of a run")
def test_a_key_that_ends_in_the_midst_of_a_run_ends_no_run(
    world: World, first: OpenAIServer, anthropic_server: anthropic.AnthropicServer
) -> None:
    first.play(calls(LOOK), failing(401, "Your key was revoked."))
    anthropic_server.play(anthropic.said("It was delivered."))
    found = onwards(world, world.submit("tool-loop", "Where is order A-1001?"))
    assert (found.terminal_code, found.scripted) == ("SUCCESS", False)
    assert taken_over(world, found) == [("anthropic", "unauthorized", 1)]
    # The conversation goes on where it was: the second provider reads what the first one asked for.
    (asked,) = anthropic_server.documents
    blocks = [block for message in asked["messages"] for block in message["content"]]
    assert [block["type"] for block in blocks if block["type"].startswith("tool")] == [
        "tool_use", "tool_result",
    ]  # fmt: skip
    assert (len(first.documents), first.violations, anthropic_server.violations) == (2, [], [])
    called = [one["profile"].split(":")[0] for one in world.said(found.id, "model_called")]
    assert called == ["openai", "openai", "anthropic"]
    world.sound(found.id)


@proves("R-TOOL-22", part="each provider's call is reserved and settled")
def test_what_was_handed_over_is_in_the_ledger_call_by_call(
    world: World, first: OpenAIServer, anthropic_server: anthropic.AnthropicServer
) -> None:
    first.play(failing(401))
    anthropic_server.play(anthropic.said("It was delivered.", usage={"input_tokens": 40, "output_tokens": 2}))
    found = onwards(world, world.submit("tool-loop", "Where is order A-1001?"))
    assert found.terminal_code == "SUCCESS"
    effects = [one["effect"] for one in world.said(found.id, "model_called")]
    with tenant_transaction(world.id):
        rows = Entry.objects.filter(run_id=found.id, effect_id__in=effects).order_by("at", "id")
        booked = [(row.effect_id, row.cause) for row in rows if row.cause in ("reserve", "settle")]
    assert booked == [(effect, cause) for effect in effects for cause in ("reserve", "settle")]
    settled = {one["effect"]: one["amounts"] for one in world.said(found.id, "budget_settled")}
    assert settled[effects[0]] == {"model_turns": "1"}
    assert (settled[effects[1]]["input_tokens"], settled[effects[1]]["output_tokens"]) == ("40", "2")
    world.sound(found.id)


@proves("R-TOOL-22", part="per-provider breaker and failover")
@proves("R-BUDGET-13", part="an open circuit is passed by")
def test_a_provider_whose_circuit_is_open_is_not_called_and_not_waited_for(
    world: World, first: OpenAIServer, anthropic_server: anthropic.AnthropicServer
) -> None:
    anthropic_server.play(anthropic.said("It was delivered."))
    run = world.submit("tool-loop", "Where is order A-1001?")
    with tenant_transaction(world.id):
        pinned = pins_of(world.id, ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run))
    TenantCircuits(world.id).trip("use", subject_of(pinned.profiles[0]), "overrun")
    found = onwards(world, run)
    assert (found.terminal_code, first.documents) == ("SUCCESS", [])
    assert taken_over(world, found) == [("anthropic", "circuit_open", 1)]
    assert world.said(found.id, "retry_scheduled") == []


@proves("R-TOOL-22", part="whoever is passed by or not waited for has no place behind the circuit")
@pytest.mark.parametrize("case", ["taken over", "interactive"])
def test_a_run_that_does_not_wait_for_its_model_has_no_place_behind_the_circuit(
    world: World,
    first: OpenAIServer,
    anthropic_server: anthropic.AnthropicServer,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
) -> None:
    usual = catalog.available_profiles
    monkeypatch.setattr(
        catalog,
        "available_profiles",
        lambda *given: tuple(one.evolve(at_once=None) for one in usual(*given)),
    )
    settings.INTERLOCK_MODEL_FAILOVER = case == "taken over"
    anthropic_server.play(anthropic.said("It was delivered."))
    mode = Mode.ASYNC if case == "taken over" else Mode.INTERACTIVE
    run = world.submit("tool-loop", "Where is order A-1001?", mode=mode)
    with tenant_transaction(world.id):
        pinned = pins_of(world.id, ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run))
    TenantCircuits(world.id).trip("use", subject_of(pinned.profiles[0]), "overrun")
    found = onwards(world, run)
    assert found.terminal_code == ("SUCCESS" if case == "taken over" else "UNAVAILABLE_DEP")
    with tenant_transaction(world.id):
        assert list(ModelTurn.objects.values_list("id", "stage")) == []


@proves("R-TOOL-22", part="failover is the operator's to switch off")
def test_with_failover_off_the_run_ends_with_its_reason(
    world: World, first: OpenAIServer, anthropic_server: anthropic.AnthropicServer, settings: Settings
) -> None:
    settings.INTERLOCK_MODEL_FAILOVER = False
    first.play(failing(401))
    found = onwards(world, world.submit("tool-loop", "Where is order A-1001?"))
    assert (found.terminal_code, found.reason) == ("UNAVAILABLE_DEP", "unauthorized")
    assert anthropic_server.documents == []
