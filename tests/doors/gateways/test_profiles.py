"""Which models a run may be pinned to, and at which price."""

from __future__ import annotations

import runpy
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from django.conf import settings
from pydantic import ValidationError

from budgets.core.pricing import ModelPrice
from config import env
from config.env import Environment
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.llm.gateways import catalog
from orchestrator.llm.gateways.catalog import (
    NO_KEY,
    ROLES,
    ModelEnvironment,
    available_profiles,
    key_for,
    profiles_for,
)
from orchestrator.llm.gateways.credentials import operators_access
from tests.proves import proves
from traces.core.canonical import canonical_model

AT = datetime(2026, 7, 1, 23, 30, tzinfo=UTC)
HERE = "http://127.0.0.1:8080/v1"


@proves("R-TOOL-23", part="no key")
def test_without_a_key_the_workflows_scenario_plays() -> None:
    profile, cheaper = profiles_for("tool_loop", ModelEnvironment(), at=AT)
    assert (cheaper.scenario, cheaper.roles, profile.cheaper) == ("tool_loop", (), cheaper.name)
    assert (profile.provider, profile.scenario, profile.roles) == ("scripted", "tool_loop", ROLES)
    assert profile.price is not None
    assert profile.price.source == "scripted"
    assert profiles_for(None, ModelEnvironment(), at=AT) == ()


@proves("R-TOOL-22", part="whether a model is asked for a stream")
def test_models_stream_where_the_operator_says_so_scripts_always_and_old_pins_never() -> None:
    for streams in (False, True):
        (first, _) = available_profiles(ModelEnvironment(openai_api_key="k", streams=streams), AT)
        assert first.streams is streams
    (scripted, _) = profiles_for("tool_loop", ModelEnvironment(), at=AT)
    assert scripted.streams
    old = {name: value for name, value in scripted.model_dump().items() if name != "streams"}
    assert not ModelProfile.model_validate(old).streams
    assert Environment.model_validate({"INTERLOCK_MODEL_STREAMS": "1"}).model_streams


@proves("R-BUDGET-15", part="what the operator says their own model costs")
@pytest.mark.parametrize(
    ("said", "into", "out"), [("0", "0", "0"), ("0.15/0.60", "0.15", "0.60"), ("2", "2", "2")]
)
def test_the_operator_says_what_their_own_model_costs(said: str, into: str, out: str) -> None:
    given = Environment.model_validate({"INTERLOCK_MODEL_PRICE": said}).model_price
    (profile,) = available_profiles(
        ModelEnvironment(openai_base_url=HERE, model="openai:llama", price=given), AT
    )
    assert profile.price is not None
    assert (profile.price.source, profile.price.version) == ("operator", f"operator {said}")
    assert profile.price.input * 1_000_000 == Decimal(into)
    assert profile.price.output * 1_000_000 == Decimal(out)
    # It is said of the address alone: a provider's own model has its listed price.
    (listed, *_) = available_profiles(ModelEnvironment(openai_api_key="k", price=given), AT)
    assert listed.price is not None
    assert listed.price.source == "genai-prices"


@pytest.mark.parametrize("said", ["free", "-1", "1/", "/1", "1/2/3", "1e3", ""])
def test_a_price_that_is_none_is_refused_at_the_start(said: str) -> None:
    with pytest.raises(ValidationError):
        Environment.model_validate({"INTERLOCK_MODEL_PRICE": said})


@proves("R-TOOL-22", part="how many calls at once where nobody says")
@pytest.mark.parametrize(
    ("url", "most"),
    [
        (HERE, 1), ("http://localhost:11434/v1", 1), ("http://10.1.2.3/v1", 1), ("http://[::1]:8080/v1", 1),
        ("http://box/v1", 1), ("https://gpu.internal/v1", 1), ("https://models.example.com/v1", None),
        ("https://93.184.216.34/v1", None),
    ],
)  # fmt: skip
def test_a_model_nearby_takes_one_call_at_once_unless_somebody_says_more(url: str, most: int | None) -> None:
    (first, *_) = available_profiles(ModelEnvironment(openai_base_url=url), AT)
    assert first.at_once == most
    (said, *_) = available_profiles(ModelEnvironment(openai_base_url=url, at_once=8), AT)
    assert said.at_once == 8
    (usual, *_) = available_profiles(ModelEnvironment(openai_api_key="k"), AT)
    assert usual.at_once is None


# Each variable by which the outside names a model: what it says, who then plays, where, with which key, and
# whose price.
GIVEN = {
    "OPENAI_API_KEY": ("very-secret", "openai", None, "very-secret", "genai-prices"),
    "ANTHROPIC_API_KEY": ("very-secret", "anthropic", None, "very-secret", "genai-prices"),
    "OPENAI_BASE_URL": (HERE, "openai", HERE, NO_KEY, "declared"),
}


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment that names no model, and in which no `.env` and no running house is found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_DATA_DIR", str(tmp_path))
    for name in (*GIVEN, "INTERLOCK_MODEL", "INTERLOCK_CHEAPER_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def as_started(around: pytest.MonkeyPatch) -> ModelEnvironment:
    """What a process that starts now knows of models: the environment, through the settings."""
    read = runpy.run_path(str(Path(env.__file__).with_name("settings.py")))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "INTERLOCK_MODEL"):
        around.setattr(settings, name, read[name])
    return ModelEnvironment.from_settings()


def test_every_variable_that_names_a_provider_is_looked_at_here() -> None:
    names = {str(field.validation_alias) for field in Environment.model_fields.values()}
    ours = {name for name in names if name.startswith("INTERLOCK_")}
    assert names - ours == {*GIVEN, "DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL"}


@proves("R-TOOL-23", part="each key, and a compatible server, is used at once")
@proves("R-TOOL-22", part="each provider's price from a maintained library, else the declared one")
@pytest.mark.parametrize("name", GIVEN)
def test_whatever_names_a_model_is_used_at_once(around: pytest.MonkeyPatch, name: str) -> None:
    assert not Environment().has_model_key
    said, provider, url, key, source = GIVEN[name]
    around.setenv(name, said)
    assert Environment().has_model_key
    environment = as_started(around)
    profile, *others = profiles_for("tool_loop", environment, at=AT)
    assert (profile.provider, profile.base_url, profile.roles) == (provider, url, ROLES)
    assert {one.provider for one in others} <= {provider}
    assert operators_access(environment, profile).key == key
    assert profile.price is not None
    assert profile.price.source == source


@proves("R-TOOL-23", part="no key, told by the process's own environment")
def test_without_any_of_them_nobody_is_asked(around: pytest.MonkeyPatch) -> None:
    environment = as_started(around)
    assert available_profiles(environment, AT) == ()
    (profile, _) = profiles_for("tool_loop", environment, at=AT)
    assert (profile.provider, operators_access(environment, profile).key) == ("scripted", None)


@proves("R-TOOL-22", part="profiles by role, failover in order")
def test_the_named_model_comes_first_and_others_take_over_from_it_unless_the_operator_says_no() -> None:
    environment = ModelEnvironment(
        model="anthropic:claude-sonnet-4-5", openai_api_key="a", anthropic_api_key="b"
    )
    first, second, cheaper = available_profiles(environment, AT)
    assert (first.model, first.roles) == ("claude-sonnet-4-5", ROLES)
    assert (second.provider, second.roles) == ("openai", ())
    assert (cheaper.provider, cheaper.roles) == ("anthropic", ())
    assert [one.failover for one in (first, second, cheaper)] == [(second.name,), (), ()]
    (alone, *_) = available_profiles(replace(environment, failover=False), AT)
    assert alone.failover == ()
    assert not Environment.model_validate({"INTERLOCK_MODEL_FAILOVER": "0"}).model_failover


@proves("R-BUDGET-5", part="the profile's cheaper model is data")
def test_a_model_has_a_cheaper_one_of_its_provider_only_where_it_costs_less() -> None:
    first, cheaper = available_profiles(ModelEnvironment(openai_api_key="k"), AT)
    assert first.cheaper == cheaper.name
    assert cheaper.price is not None
    assert first.price is not None
    assert cheaper.price.input < first.price.input
    (cheapest,) = available_profiles(ModelEnvironment(model="openai:gpt-5-nano", openai_api_key="k"), AT)
    assert cheapest.cheaper is None
    own = ModelEnvironment(model="openai:big", cheaper="openai:small", openai_base_url=HERE)
    assert [profile.model for profile in available_profiles(own, AT)] == ["big", "small"]
    assert [profile.model for profile in available_profiles(ModelEnvironment(openai_base_url=HERE), AT)] == [
        "default"
    ]


def test_a_model_without_its_key_is_not_available() -> None:
    assert available_profiles(ModelEnvironment(model="openai:gpt-5-mini"), AT) == ()


def test_scripted_can_be_asked_for_by_name() -> None:
    environment = ModelEnvironment(model="scripted", openai_api_key="k")
    assert profiles_for("tool_loop", environment, at=AT)[0].provider == "scripted"


@proves("R-BUDGET-15", part="unknown price")
def test_an_unlisted_price_is_the_declared_worst_case_or_none_to_ask_at() -> None:
    worst = available_profiles(ModelEnvironment(openai_base_url=HERE, model="openai:my-own"), AT)[0].price
    assert worst is not None
    assert (worst.input, worst.output, worst.source) == (Decimal("0.00002"), Decimal("0.00002"), "declared")
    refused = ModelEnvironment(openai_base_url=HERE, model="openai:my-own", unknown_price="refuse")
    assert available_profiles(refused, AT)[0].price is None


@proves("B4", part="listed prices go by the time that is given")
def test_the_listed_price_is_that_of_the_day_that_is_given_and_not_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days: list[datetime] = []

    def listed(provider: str, model: str, at: datetime) -> ModelPrice:
        days.append(at)
        return ModelPrice.free(provider, model)

    monkeypatch.setattr(catalog, "from_genai_prices", listed)
    environment = ModelEnvironment(model="openai:of-its-day", cheaper="openai:of-its-day", openai_api_key="k")
    away = AT.astimezone(timezone(timedelta(hours=-3)))
    for at in (AT, away, AT + timedelta(hours=1)):
        available_profiles(environment, at)
    assert days == [datetime(2026, 7, day, tzinfo=UTC) for day in (1, 2)]


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
def test_no_key_is_in_a_profile_or_shown(around: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        around.setenv(name, GIVEN[name][0])
    environment = as_started(around)
    shown = available_profiles(environment, AT)
    accesses = [operators_access(environment, profile) for profile in shown]
    assert {access.key for access in accesses} == {"very-secret"}
    assert "secret" not in repr((environment, accesses))
    assert not any(b"-secret" in canonical_model(profile) for profile in shown)


def test_a_key_fits_only_the_address_it_was_configured_with() -> None:
    environment = ModelEnvironment(openai_base_url=HERE, openai_api_key="k")
    (profile,) = available_profiles(environment, AT)
    assert key_for(environment, profile) == "k"
    assert key_for(environment, profile.evolve(base_url="http://elsewhere/v1")) is None
    assert key_for(environment, profile.evolve(base_url=None)) is None
    assert key_for(ModelEnvironment(openai_base_url=HERE), profile) == "no-key"
    assert key_for(ModelEnvironment(), profile.evolve(base_url=None)) is None


def test_the_same_surroundings_give_the_same_pins() -> None:
    environment = ModelEnvironment(anthropic_api_key="k")
    assert available_profiles(environment, AT) == available_profiles(environment, AT)
