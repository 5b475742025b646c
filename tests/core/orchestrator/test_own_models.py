"""The models that a tenant names itself: how they fit together, and what reaches further (R-TOOL-22)."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.model_profile import ModelProfile, Role
from orchestrator.core.llm.tenant_models import MOST_MODELS, OwnModel, OwnModels, faults_of, wider_models
from tests.proves import proves

MAIN: dict[str, Any] = {"name": "main", "provider": "openai", "model": "large", "roles": ("executor",)}
HOUSE = tuple(ModelProfile(name=name, provider="openai", model="m") for name in ("openai:a", "anthropic:b"))


def models(*given: dict[str, Any]) -> OwnModels:
    """These, as an administrator would say them."""
    return OwnModels.model_validate({"profiles": given})


@proves("R-TOOL-22", part="what a profile says")
def test_everything_that_is_said_of_a_model_is_in_its_profile() -> None:
    given = {
        **MAIN, "base_url": "https://models.example/v1", "secret": "key", "context_tokens": 9_000,
        "max_output_tokens": 900, "timeout_ms": 9_000, "max_retries": 4, "streams": True, "cheaper": "small",
        "failover": ("small", "house"),
    }  # fmt: skip
    profile = OwnModel.model_validate(given).profile(None, HOUSE)
    told = profile.model_dump()
    same = {name: told[name] for name in given if name != "failover"}
    assert same == {name: value for name, value in given.items() if name != "failover"}
    assert profile.failover == ("small", "openai:a", "anthropic:b")
    assert profile.own
    bare = OwnModel.model_validate(MAIN).profile(None, ())
    assert (bare.base_url, bare.cheaper, bare.secret) == (None, None, "")


def test_a_secret_is_kept_for_the_origin_of_the_address_or_the_providers_own() -> None:
    assert OwnModel.model_validate(MAIN).origin == "https://api.openai.com"
    assert OwnModel.model_validate({**MAIN, "provider": "anthropic"}).origin == "https://api.anthropic.com"
    other = OwnModel.model_validate({**MAIN, "base_url": "https://Models.example:8443/v1"})
    assert other.origin == "https://models.example:8443"
    with pytest.raises(EgressRefused):
        OwnModel.model_validate({**MAIN, "base_url": "https://u:p@models.example"}).origin  # noqa: B018


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "openai:main"}, {"name": "Main"}, {"name": ""}, {"provider": "scripted"}, {"model": ""},
        {"model": "a\nb"}, {"secret": "Key"}, {"roles": ("king",)}, {"context_tokens": 1},
        {"max_output_tokens": 0}, {"timeout_ms": 0}, {"max_retries": 11}, {"key": "sk-1"},
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OwnModel.model_validate({**MAIN, **wrong})


@proves("R-TOOL-22", part="models that fit together")
def test_each_fault_of_a_list_is_named_where_it_stands() -> None:
    second = {**MAIN, "name": "second", "roles": ()}
    assert list(faults_of(models(MAIN, {**second, "failover": ("main", "house"), "cheaper": "main"}))) == []
    found = dict(
        faults_of(
            models(
                {**MAIN, "cheaper": "main", "failover": ("none",)},
                {**MAIN, "failover": ("house", "main")},
            )
        )
    )
    assert list(found) == [
        "/profiles/0/cheaper", "/profiles/0/failover/0", "/profiles/1/name", "/profiles/1/failover/1",
        "/profiles/1/roles/0",
    ]  # fmt: skip
    assert dict(faults_of(models(second))) == {"/profiles/0/roles": "Somebody has to play a role."}
    assert dict(faults_of(models({**MAIN, "name": "house"}))) == {
        "/profiles/0/name": "The operator's models are called so."
    }
    assert list(faults_of(OwnModels())) == []
    with pytest.raises(ValidationError):
        models(*({**second, "name": f"m{number}"} for number in range(MOST_MODELS + 1)))


@proves("R-TOOL-22", part="a new address or key reaches further")
def test_new_addresses_and_keys_reach_further_and_other_changes_do_not() -> None:
    before = models(MAIN)
    assert wider_models(OwnModels(), before) == ("Prompts go to main: large at https://api.openai.com/v1.",)
    assert wider_models(before, OwnModels()) == ()
    changed = {**MAIN, "timeout_ms": 9_000, "failover": ("house",), "streams": True}
    assert wider_models(before, models(changed)) == ()
    for elsewhere in ({"base_url": "https://api.openai.com/v1/other"}, {"model": "larger"}):
        (moved,) = wider_models(before, models({**MAIN, **elsewhere}))
        assert moved.startswith("Prompts go to main: ")
    (keyed,) = wider_models(before, models({**MAIN, "secret": "key"}))
    assert keyed == "main is asked with another secret: key, no longer none."


@proves("R-TOOL-22", part="who is asked now reaches further")
def test_who_is_asked_for_the_first_time_reaches_further_too() -> None:
    alone = {**MAIN, "roles": get_args(Role)}
    second = {**MAIN, "name": "second", "model": "small", "roles": ()}
    aside = models(alone, second)
    for named in ({"cheaper": "second"}, {"failover": ("second",)}):
        (asked,) = wider_models(aside, models({**alone, **named}, second))
        assert asked.startswith("Prompts go to second")
    house = "Prompts go to the operator's models again."
    for after in (OwnModels(), models(MAIN), models({**alone, "failover": ("house",)})):
        assert wider_models(models(alone), after) == (house,)
    assert wider_models(models(MAIN), OwnModels()) == ()
