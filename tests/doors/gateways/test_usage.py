"""What a call took and cost as each protocol tells it: the provider's own figures, whole or streamed, or ours
(R-TOOL-22).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from budgets.core.pricing import ModelPrice
from orchestrator.core.accounting.effect_cost import model_actual
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.llm.gateways.catalog import ModelEnvironment
from orchestrator.outbound.gateways.async_executor import EffectLoop
from tests.doors.gateways.effects import Told, ask_model, prompt
from tests.doubles import anthropic_server as messages
from tests.doubles import openai_server as chat
from tests.doubles.anthropic_server import AnthropicServer
from tests.doubles.http_server import ABSENT, Reply
from tests.doubles.openai_server import OpenAIServer
from tests.doubles.streams import as_anthropic, as_openai
from tests.proves import proves

PRICE = ModelPrice(
    provider="loopback", model="loopback-1", input=Decimal("0.000003"), output=Decimal("0.000015"),
    cache_read=Decimal("0.0000003"), cache_write=Decimal("0.00000375"), source="declared", version="1",
)  # fmt: skip


class Dialect(NamedTuple):
    """A protocol: how its server tells a call of 120 input tokens, 40 of them cached, and 30 of output; what
    of that is written to the cache; and what the call costs at PRICE."""

    server: Callable[[], OpenAIServer | AnthropicServer]
    said: Callable[..., Reply]
    streamed: Callable[[Reply], Reply]
    told: dict[str, Any]
    stored: str
    cost: str


DIALECTS = {
    "openai": Dialect(
        OpenAIServer, chat.said, as_openai,
        {**chat.usage(120, 30), "prompt_tokens_details": {"cached_tokens": 40}},
        "0", "0.000702",
    ),
    "anthropic": Dialect(
        AnthropicServer, messages.said, as_anthropic,
        {"input_tokens": 70, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10,
         "output_tokens": 30},
        "10", "0.0007095",
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("provider", DIALECTS)
STREAMED = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


def asked(loop: EffectLoop, provider: Any, usage: Any, *, streams: bool) -> tuple[Told, dict[str, Decimal]]:
    """One call of a server that tells its usage so, and what is settled for it."""
    dialect = DIALECTS[provider]
    script = dialect.said("Hello.", usage=usage)
    server = dialect.server()
    server.play(dialect.streamed(script) if streams else script)
    server.streams = streams
    with server:
        environment = ModelEnvironment(
            openai_base_url=server.url, openai_api_key="k",
            anthropic_base_url=server.url, anthropic_api_key="k",
        )  # fmt: skip
        profile = ModelProfile(
            name="p", provider=provider, model="loopback-1", base_url=server.url, price=PRICE, streams=streams
        )
        told = ask_model(loop, environment, profile, timeout_ms=25_000)
        assert server.violations == []
    return told, dict(model_actual(profile, told.event.usage))


@proves(
    "R-TOOL-22", part="usage is the provider's own figure, at its price: each protocol, whole and streamed"
)
@EACH
@STREAMED
def test_a_call_costs_what_the_providers_own_figures_come_to(
    loop: EffectLoop, provider: str, streams: bool
) -> None:
    dialect = DIALECTS[provider]
    told, settled = asked(loop, provider, dialect.told, streams=streams)
    assert told.event.counted == "provider"
    assert told.event.usage == {
        "input_tokens": 120, "output_tokens": 30, "cache_read_tokens": 40,
        "cache_write_tokens": Decimal(dialect.stored),
    }  # fmt: skip
    assert settled == {
        "model_turns": 1, "input_tokens": 120, "output_tokens": 30, "total_tokens": 150,
        "cost_usd": Decimal(dialect.cost),
    }  # fmt: skip


@proves("R-TOOL-22", part="where a provider gives no usage it is counted and marked: each protocol")
@EACH
@STREAMED
def test_where_no_figure_is_given_ours_is_settled_and_says_so(
    loop: EffectLoop, provider: str, streams: bool
) -> None:
    told, settled = asked(loop, provider, ABSENT, streams=streams)
    sent, said = len(prompt()), len("Hello.")
    assert told.event.counted == "estimated"
    assert told.event.usage == {"input_tokens": sent, "output_tokens": said}
    assert settled["cost_usd"] == sent * PRICE.input + said * PRICE.output
