"""How long one call may take, in a run that has as much time as ever: what a test is about does not hang on
how fast the machine is."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from orchestrator.core.domain.effects import CallTool
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.effect_result import EffectResult
from orchestrator.tools.gateways.dispatcher import ToolGateway

LITTLE_MS, AN_HOUR_MS = 400, 3_600_000


def in_a_hurry(tool: str) -> AbstractContextManager[None]:
    """The next call of a tool is given up soon where nobody answers it. What comes after it, looks it up or
    asks the model has its own time: those are answered, as soon as the machine can."""
    return _given(tool, LITTLE_MS)


def in_no_hurry(tool: str) -> AbstractContextManager[None]:
    """The next call of a tool waits for its answer however long the test does other things meanwhile."""
    return _given(tool, AN_HOUR_MS)


@contextmanager
def _given(tool: str, timeout_ms: int) -> Iterator[None]:
    start, wanted = ToolGateway.start, [tool]

    def started(
        gateway: ToolGateway, loop: EffectLoop, effect: CallTool, *more: Any, **named: Any
    ) -> "Future[EffectResult]":
        if effect.tool in wanted:
            wanted.clear()
            effect = effect.evolve(timeout_ms=timeout_ms)
        return start(gateway, loop, effect, *more, **named)

    with mock.patch.object(ToolGateway, "start", started):
        yield
