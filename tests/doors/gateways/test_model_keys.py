"""The key that a model is asked with: in nothing that is kept or shown, with nobody else's headers (M16, P9,
W3).
"""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.run_events import ModelFailed, ModelReplied
from orchestrator.core.tools.egress_policy import EgressPolicy
from orchestrator.llm.gateways.credentials import Access
from orchestrator.llm.gateways.model_request import ModelCall
from orchestrator.llm.gateways.providers.http_provider import perform_model_call
from orchestrator.llm.gateways.providers.response_sanitizing import Capture, clean_openai
from orchestrator.llm.gateways.providers.transport import CAPTURE, http_client
from orchestrator.llm.gateways.response import MAX_TEXT
from orchestrator.outbound.gateways.async_executor import MOST_CLIENTS, EffectLoop
from tests.doors.gateways.effects import PATIENCE, SALT, Told, Watching, call_model, prompt, read
from tests.doors.gateways.test_egress import Site, answers, named
from tests.doors.gateways.test_egress import site as site
from tests.doubles.anthropic_server import AnthropicServer, ToolUse, uses
from tests.doubles.anthropic_server import failing as unwell
from tests.doubles.anthropic_server import said as answered
from tests.doubles.http_server import Reply
from tests.doubles.openai_server import Call, OpenAIServer, calls, failing, said
from tests.doubles.streams import DONE, data, openai_parts, stream
from tests.proves import proves

# Of no shape that anybody could know a key by.
KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"


def asked(
    loop: EffectLoop, server: OpenAIServer | AnthropicServer, audience: Watching | None = None, **more: Any
) -> Told:
    """One call of a tenant's own model at this server, waited for."""
    body = prompt()
    profile = ModelProfile(
        name="p", provider=more.pop("provider", "openai"), model="m", base_url=server.url, own=True, **more
    )
    leave = EgressPolicy(origins=(server.origin,), private=(server.origin.removeprefix("http://"),))
    effect = call_model(body, timeout_ms=25_000)
    call = ModelCall(effect=effect, request=body, profile=profile, salt=SALT, audience=audience)
    access = Access(key=KEY, own=True, leave=leave)
    return read(loop.submit(perform_model_call(loop, access, call)).result(PATIENCE))


def kept(told: Told) -> str:
    """All that an outcome keeps."""
    return repr(told.event) + "".join(body.decode("utf-8", "replace") for body in told.bodies.values())


@proves("M16", part="a model's own key, whatever its shape")
@proves("R-TOOL-22", part="a key that a server repeats is in nothing that is kept")
@pytest.mark.parametrize(
    "script",
    [
        said(f"It is {KEY}."), calls(Call("orders_lookup", {"x": KEY}, f"call_{KEY}")),
        said("word " * 20_000 + f"and {KEY}"), failing(500, f"bad key {KEY}"), failing(401, f"not {KEY}"),
        Reply(body=f"<p>{KEY}</p>".encode()),
    ],
    ids=["text", "arguments", "long text", "error", "refusal", "page"],
)  # fmt: skip
def test_a_key_that_a_server_repeats_is_in_nothing_that_is_kept(loop: EffectLoop, script: Reply) -> None:
    with OpenAIServer(script, key=KEY) as server:
        told = asked(loop, server)
    assert len(server.seen) == 1
    assert KEY not in kept(told)
    assert "[secret]" in kept(told) or isinstance(told.event, ModelFailed)


@proves("M16", part="a model's own key, in the other protocol")
@pytest.mark.parametrize(
    "script",
    [
        answered(f"It is {KEY}."), uses(ToolUse("orders_lookup", {"x": KEY}, f"toolu_{KEY}")),
        unwell(500, message=f"bad key {KEY}"), unwell(401, message=f"not {KEY}"),
    ],
    ids=["text", "arguments", "error", "refusal"],
)  # fmt: skip
def test_a_key_that_is_repeated_in_the_other_protocol_is_kept_no_more(
    loop: EffectLoop, script: Reply
) -> None:
    with AnthropicServer(script, key=KEY) as server:
        told = asked(loop, server, provider="anthropic")
    assert len(server.seen) == 1
    assert KEY not in kept(told)
    assert "[secret]" in kept(told) or isinstance(told.event, ModelFailed)


@proves("M16", part="a model's own key at the cut of a text")
@pytest.mark.parametrize("inside", [1, 16, 31])
def test_a_key_that_a_long_text_is_cut_in_leaves_no_part_behind(loop: EffectLoop, inside: int) -> None:
    text = "w" * (MAX_TEXT - inside) + KEY + "w" * 100
    with OpenAIServer(said(text), key=KEY) as server:
        told = asked(loop, server)
    assert isinstance(told.event, ModelReplied)
    assert KEY[:inside] not in told.text(told.event.answer)


@proves("M16", part="a model's own key while it writes")
def test_a_key_is_not_shown_while_it_is_written_nor_any_part_of_it(loop: EffectLoop) -> None:
    watching, go = Watching(), Event()
    parts = openai_parts(said(f"Mine is {KEY} I say, and so on it goes."), size=24)
    # All but its end is there, and waits until somebody was shown what stands behind the key.
    server = OpenAIServer(stream(*parts[:-2], go, *parts[-2:], DONE), key=KEY)
    server.streams = True
    with server:
        watcher = loop.submit(_seen(watching, go))
        told = asked(loop, server, watching, streams=True)
        watcher.result(PATIENCE)
    assert any("say" in text for _, text in watching.told)
    assert not any(KEY[:4] in text for _, text in watching.told)
    assert KEY not in kept(told)


async def _seen(watching: Watching, go: Event) -> None:
    for _ in range(200):
        if any("say" in text for _, text in watching.told):
            break
        await asyncio.sleep(0.05)
    go.set()


def test_a_key_in_what_a_stream_breaks_off_with_is_not_kept(loop: EffectLoop) -> None:
    error = data({"error": {"message": "x" * 190 + KEY, "type": "server_error"}})
    server = OpenAIServer(stream(*openai_parts(said("Hello"))[:1], error), key=KEY)
    server.streams = True
    with server:
        told = asked(loop, server, streams=True)
    assert isinstance(told.event, ModelFailed)
    assert KEY[:8] not in kept(told)


@proves("P9", part="the operator's headers stay with the operator's models")
def test_nothing_of_the_operators_environment_goes_to_a_tenants_address(
    loop: EffectLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "OPENAI_ORG_ID": "org-operator", "OPENAI_PROJECT_ID": "project-operator",
        "OPENAI_CUSTOM_HEADERS": "X-Gateway: operator\nAuthorization: Bearer operator",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway: operator", "ANTHROPIC_AUTH_TOKEN": "operator",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with OpenAIServer(said("Hello."), key=KEY) as chat, AnthropicServer(answered("Hello.")) as messages:
        for server, provider in ((chat, "openai"), (messages, "anthropic")):
            told = asked(loop, server, provider=provider)
            assert isinstance(told.event, ModelReplied), told.text(told.event.detail)
    assert chat.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert (messages.seen[0].headers["x-api-key"], messages.violations) == (KEY, [])
    assert "operator" not in str([chat.seen[0].headers, messages.seen[0].headers])


@proves("W3", part="a model's address that rebinds")
async def test_a_models_address_that_rebinds_is_refused_at_connect(site: Site) -> None:
    url, leave = named(site, private=False)
    resolver, _ = answers(["127.0.0.1"])
    CAPTURE.set(Capture(clean=clean_openai))
    async with http_client(url, leave, resolver=resolver) as client:
        with pytest.raises(EgressRefused, match="not public"):
            await client.post(url)
    assert site.seen == []


async def test_clients_of_addresses_and_keys_that_are_asked_no_more_make_room() -> None:
    loop, made = EffectLoop(), list[int]()

    async def close() -> None:
        """Nothing to close."""

    def client(number: int) -> int:
        def make() -> tuple[int, Any]:
            made.append(number)
            return number, close

        return loop.client(number, make)

    for number in range(MOST_CLIENTS + 1):
        client(number)
    assert [client(0), client(MOST_CLIENTS)] == [0, MOST_CLIENTS]
    assert made.count(0) == 2
    assert made.count(MOST_CLIENTS) == 1
