"""Which models a run may be pinned to, and at which price."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import ValidationError

from config.env import Environment
from orchestrator.core.value import Value
from orchestrator.gateways.llm.profiles import (
    ROLES,
    ModelEnvironment,
    available_profiles,
    key_for,
    profiles_for,
)
from tests.proves import proves
from traces.core.canonical import canonical_model

HERE = "http://127.0.0.1:8080/v1"


@proves("R-TOOL-23", part="no key")
def test_without_a_key_the_workflows_scenario_plays() -> None:
    profile, cheaper = profiles_for("tool_loop", ModelEnvironment())
    assert (cheaper.scenario, cheaper.roles, profile.cheaper) == ("tool_loop", (), cheaper.name)
    assert (profile.provider, profile.scenario, profile.roles) == ("scripted", "tool_loop", ROLES)
    assert profile.price is not None
    assert profile.price.source == "scripted"
    assert profiles_for(None, ModelEnvironment()) == ()


@proves("R-TOOL-23", part="a key is used at once")
def test_a_key_is_used_at_once() -> None:
    (profile,) = profiles_for("tool_loop", ModelEnvironment(anthropic_api_key="k"))
    assert (profile.provider, profile.base_url, profile.roles) == ("anthropic", None, ROLES)
    assert profile.price is not None
    assert profile.price.source == "genai-prices"


@proves("R-TOOL-22", part="profiles by role, failover in order")
def test_the_named_model_comes_first_and_others_stand_by() -> None:
    environment = ModelEnvironment(
        model="anthropic:claude-sonnet-4-5", openai_api_key="a", anthropic_api_key="b"
    )
    first, second, cheaper = available_profiles(environment)
    assert (first.model, first.roles) == ("claude-sonnet-4-5", ROLES)
    assert (second.provider, second.roles) == ("openai", ())
    assert (cheaper.provider, cheaper.roles) == ("anthropic", ())


@proves("R-BUDGET-5", part="the profile's cheaper model is data")
def test_a_model_has_a_cheaper_one_of_its_provider_only_where_it_costs_less() -> None:
    first, cheaper = available_profiles(ModelEnvironment(openai_api_key="k"))
    assert first.cheaper == cheaper.name
    assert cheaper.price is not None
    assert first.price is not None
    assert cheaper.price.input < first.price.input
    (cheapest,) = available_profiles(ModelEnvironment(model="openai:gpt-5-nano", openai_api_key="k"))
    assert cheapest.cheaper is None
    own = ModelEnvironment(model="openai:big", cheaper="openai:small", openai_base_url=HERE)
    assert [profile.model for profile in available_profiles(own)] == ["big", "small"]
    assert [profile.model for profile in available_profiles(ModelEnvironment(openai_base_url=HERE))] == [
        "default"
    ]


def test_a_model_without_its_key_is_not_available() -> None:
    assert available_profiles(ModelEnvironment(model="openai:gpt-5-mini")) == ()


def test_scripted_can_be_asked_for_by_name() -> None:
    environment = ModelEnvironment(model="scripted", openai_api_key="k")
    assert profiles_for("tool_loop", environment)[0].provider == "scripted"


@proves("R-BUDGET-15", part="unknown price")
def test_an_unlisted_price_is_the_declared_worst_case_or_none_to_ask_at() -> None:
    worst = available_profiles(ModelEnvironment(openai_base_url=HERE, model="openai:my-own"))[0].price
    assert worst is not None
    assert (worst.input, worst.output, worst.source) == (Decimal("0.00002"), Decimal("0.00002"), "declared")
    refused = ModelEnvironment(openai_base_url=HERE, model="openai:my-own", unknown_price="refuse")
    assert available_profiles(refused)[0].price is None


@proves("R-BUDGET-15", part="no policy takes an unknown price as nothing")
@pytest.mark.parametrize(
    ("name", "value"),
    [("UNKNOWN_PRICE", "free"), ("WORST_CASE_USD_PER_MTOK", "0"), ("WORST_CASE_USD_PER_CALL", "0")],
)
def test_the_house_cannot_be_told_that_an_unknown_price_is_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"INTERLOCK_{name}", value)
    with pytest.raises(ValidationError, match=f"INTERLOCK_{name}"):
        Environment()


@proves("R-SEC-8", part="model keys")
def test_no_key_is_in_a_profile_or_shown() -> None:
    environment = ModelEnvironment(openai_api_key="very-secret", anthropic_api_key="also-secret")
    shown: list[Value] = list(available_profiles(environment))
    assert "secret" not in repr(environment)
    assert not any(b"secret" in canonical_model(profile) for profile in shown)


def test_a_key_fits_only_the_address_it_was_configured_with() -> None:
    environment = ModelEnvironment(openai_base_url=HERE, openai_api_key="k")
    (profile,) = available_profiles(environment)
    assert key_for(environment, profile) == "k"
    assert key_for(environment, profile.evolve(base_url="http://elsewhere/v1")) is None
    assert key_for(environment, profile.evolve(base_url=None)) is None
    assert key_for(ModelEnvironment(openai_base_url=HERE), profile) == "no-key"
    assert key_for(ModelEnvironment(), profile.evolve(base_url=None)) is None


def test_the_same_surroundings_give_the_same_pins() -> None:
    environment = ModelEnvironment(anthropic_api_key="k")
    assert available_profiles(environment) == available_profiles(environment)
