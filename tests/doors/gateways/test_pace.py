"""The tool gateway's own rate, with a machine that asks too often (R-BUDGET-17)."""

from __future__ import annotations

from uuid import UUID

import pytest

from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.call_rate_limiter import KEPT, CallRateLimiter
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.registry import shipped_tools
from tests.doors.gateways.effects import PATIENCE, SALT, ScriptedPermit, Told, call_tool, read
from tests.doubles.company import Company
from tests.proves import proves

ORDER = b'{"order_id":"A-1001"}'
SPEC = shipped_tools()["orders.lookup"].spec.evolve(rate_per_minute=2)


class Clock:
    """Seconds, moved by hand."""

    now = 0.5

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tools(company: Company, clock: Clock) -> ToolGateway:
    return ToolGateway(env={"INTERLOCK_DEMO_URL": company.url}.get, pace=CallRateLimiter(clock))


def look_up(loop: EffectLoop, tools: ToolGateway, run: int = 1) -> Told:
    permit = ScriptedPermit(run=UUID(int=run))
    effect = call_tool("orders.lookup", ORDER)
    return read(tools.start(loop, effect, ORDER, SPEC, SALT, permit).result(PATIENCE))


@proves("R-BUDGET-17", part="rate")
def test_a_call_beyond_the_rate_is_refused_before_it_is_sent(
    loop: EffectLoop, tools: ToolGateway, company: Company, clock: Clock
) -> None:
    assert [look_up(loop, tools).event.kind for _ in range(2)] == ["tool_answered"] * 2
    refused = look_up(loop, tools)
    assert (refused.event.error, refused.event.sent, refused.event.transient) == ("rate_limited", False, True)
    assert refused.text(refused.event.detail) == "orders.lookup takes 2 calls a minute; again in 60 s"
    assert refused.event.retry_after_ms == 60_000
    assert len(company.requests()) == 2
    clock.now += 60
    assert look_up(loop, tools).event.kind == "tool_answered"


def test_another_run_has_a_rate_of_its_own(loop: EffectLoop, tools: ToolGateway) -> None:
    found = [look_up(loop, tools, run).event.kind for run in (1, 1, 1, 2)]
    assert found == ["tool_answered", "tool_answered", "tool_failed", "tool_answered"]


def test_a_refusal_says_nothing_about_the_other_sides_health(loop: EffectLoop, tools: ToolGateway) -> None:
    for _ in range(9):
        look_up(loop, tools)
    assert tools.circuits.list_blocked("tool", "orders.lookup") == ()


def test_runs_that_have_gone_quiet_are_forgotten(clock: Clock) -> None:
    pace = CallRateLimiter(clock)
    for run in range(3 * KEPT):
        clock.now += 1
        assert pace.take(run, 1) == 0
    assert len(pace._windows) <= KEPT + 1
