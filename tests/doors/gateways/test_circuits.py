"""What a gateway tells of a call's other side, and what it keeps to itself (R-BUDGET-13)."""

from __future__ import annotations

import pytest

from orchestrator.core.tools import circuit_breaker as rules
from orchestrator.core.tools.circuit_breaker import Setting
from orchestrator.llm.gateways.client import ModelGateway, subject_of
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.circuit_breaker_client import LocalCircuits
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.registry import shipped_tools
from tests.doors.gateways.effects import (
    PATIENCE,
    SALT,
    ScriptedPermit,
    call_model,
    openai_at,
    prompt,
    read,
    use_tool,
)
from tests.doubles.company import Company
from tests.doubles.openai_server import OpenAIServer, failing, said, usage
from tests.proves import proves

ORDER = {"order_id": "A-1001"}
TOOL = "orders.lookup"


@pytest.fixture
def tools(company: Company) -> ToolGateway:
    """A gateway whose one service is the demo company of this test."""
    return ToolGateway(env={"INTERLOCK_DEMO_URL": company.url}.get)


@proves("R-BUDGET-13", part="a hurried run shuts nothing")
def test_a_timeout_that_was_the_runs_own_tells_nothing_of_the_tool(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    company.faults("orders", "slow", seconds=0.5)
    assert shipped_tools()[TOOL].spec.timeout_ms > 50
    words = [use_tool(loop, tools, TOOL, ORDER, timeout_ms=50).event.error for _ in range(6)]
    assert set(words) <= {"timeout", "unreachable"}
    assert tools.circuits.list_blocked("tool", TOOL) == ()


@proves("R-BUDGET-13", part="a provider that hangs")
def test_a_provider_that_hangs_is_left_alone_by_runs_shorter_than_its_timeout(
    loop: EffectLoop, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What silence tells is shortened, so that the test need not wait for it."""
    monkeypatch.setattr(rules, "TELLING_MS", 100)
    openai_server.play(*[said("late").after(30)] * 3)
    environment, profile = openai_at(openai_server.url)
    gateway, body = ModelGateway(lambda: environment), prompt()
    gateway.circuits = LocalCircuits(Setting(threshold=2))

    def ask(timeout_ms: int) -> str:
        effect = call_model(body, timeout_ms=timeout_ms)
        started = gateway.start(loop, effect, body, profile, SALT, ScriptedPermit())
        return str(getattr(read(started.result(PATIENCE)).event, "error", "replied"))

    assert profile.timeout_ms > 200
    assert [ask(200) for _ in range(3)] == ["timeout", "timeout", "circuit_open"]
    gateway.circuits = LocalCircuits(Setting(threshold=1))
    assert [ask(50), gateway.circuits.list_blocked("model", subject_of(profile))] == ["timeout", ()]


def test_a_call_turned_away_says_when_somebody_may_try(
    loop: EffectLoop, tools: ToolGateway, company: Company
) -> None:
    tools.circuits.trip("tool", TOOL, "timeout")
    told = use_tool(loop, tools, TOOL, ORDER)
    assert (told.event.error, told.event.sent, told.event.transient) == ("circuit_open", False, True)
    assert 0 < told.event.retry_after_ms <= 30_000
    assert company.requests("orders") == []


@proves("R-BUDGET-13", part="a good probe closes")
def test_after_its_cooldown_a_good_call_closes_the_circuit(
    loop: EffectLoop, company: Company, tools: ToolGateway
) -> None:
    now = [0.0]
    tools.circuits = LocalCircuits(Setting(threshold=2), clock=lambda: now[0])
    company.faults("orders", "fail", times=2)
    for _ in range(2):
        use_tool(loop, tools, TOOL, ORDER)
    assert use_tool(loop, tools, TOOL, ORDER).event.error == "circuit_open"
    now[0] = 30
    assert use_tool(loop, tools, TOOL, ORDER).event.kind == "tool_answered"
    assert use_tool(loop, tools, TOOL, ORDER).event.kind == "tool_answered"


@proves("R-TOOL-22", part="a breaker for each provider")
def test_a_provider_that_failed_is_asked_again_by_one_call(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    now = [0.0]
    openai_server.play(failing(500), failing(500), said("hello"))
    environment, profile = openai_at(openai_server.url)
    gateway, body = ModelGateway(lambda: environment), prompt()
    gateway.circuits = LocalCircuits(Setting(threshold=2), clock=lambda: now[0])

    def ask() -> str:
        started = gateway.start(loop, call_model(body), body, profile, SALT, ScriptedPermit())
        return str(getattr(read(started.result(PATIENCE)).event, "error", "replied"))

    assert [ask() for _ in range(3)] == ["server_error", "server_error", "circuit_open"]
    now[0] = 30
    assert ask() == "replied"
    assert gateway.circuits.list_blocked("model", subject_of(profile)) == ()


@proves("R-BUDGET-13", part="an overrun shuts no provider")
def test_a_reply_that_took_more_than_was_reserved_shuts_the_askers_own_use(
    loop: EffectLoop, openai_server: OpenAIServer
) -> None:
    openai_server.play(said("hello", usage=usage(900_000, 5)))
    environment, profile = openai_at(openai_server.url)
    gateway, body = ModelGateway(lambda: environment), prompt()

    def ask() -> str:
        started = gateway.start(loop, call_model(body), body, profile, SALT, ScriptedPermit())
        return str(getattr(read(started.result(PATIENCE)).event, "error", "replied"))

    assert [ask(), ask()] == ["replied", "circuit_open"]
    subject = subject_of(profile)
    assert gateway.circuits.list_blocked("use", subject) == (subject,)
    assert gateway.circuits.list_blocked("model", subject) == ()


def test_a_circuits_name_holds_no_secret() -> None:
    _, profile = openai_at("https://somebody:a-secret@models.example:8443/v1?key=another")
    assert subject_of(profile) == "openai models.example:8443/v1"
