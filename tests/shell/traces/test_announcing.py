"""Hints after a commit: coalesced, delivered, and lost without anybody noticing."""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest
from channels.layers import InMemoryChannelLayer

from tenancy.ids import fresh_id
from traces import live
from traces.signals import appended


class Layer:
    """A channel layer that keeps what it is sent, after some delay, or fails."""

    def __init__(self, *, delay: float = 0.0, fails: bool = False) -> None:
        self.delay, self.fails = delay, fails
        self.messages: list[tuple[str, dict[str, Any]]] = []

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Keep it."""
        await asyncio.sleep(self.delay)
        if self.fails:
            raise ConnectionError
        self.messages.append((group, message))


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> live.Publisher:
    """A publisher of this test's own."""
    monkeypatch.setattr(live, "_publishers", [])
    return live.publisher()


def wait_for(happened: Any) -> None:
    """Until it happened, at most five seconds."""
    end = time.monotonic() + 5
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_hints_that_wait_are_one_hint(publisher: live.Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, run = Layer(delay=0.1), fresh_id()
    monkeypatch.setattr(live, "get_channel_layer", lambda: layer)
    for seq in range(1, 50):
        live.announce(run, seq)
    wait_for(lambda: layer.messages and layer.messages[-1][1]["seq"] == 49)
    assert len(layer.messages) <= 3
    assert layer.messages[-1] == (f"run.{run.hex}", {"type": "run.news", "run": str(run), "seq": 49})


def test_a_dead_or_slow_broker_costs_hints_and_nothing_else(
    publisher: live.Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.05)
    for number, layer in enumerate((Layer(fails=True), Layer(delay=60), None), 1):
        monkeypatch.setattr(live, "get_channel_layer", lambda layer=layer: layer)
        live.announce(fresh_id(), 1)
        wait_for(lambda number=number: publisher.dropped == number)
    assert publisher.is_alive()


def test_the_news_is_told_at_once_and_a_receiver_that_fails_harms_nobody(publisher: live.Publisher) -> None:
    heard: list[tuple[UUID, int]] = []

    def hears(run_id: UUID, seq: int, **_: Any) -> None:
        heard.append((run_id, seq))

    def fails(**_: Any) -> None:
        raise RuntimeError

    appended.connect(fails)
    appended.connect(hears)
    try:
        run = fresh_id()
        live.announce(run, 7)
    finally:
        appended.disconnect(fails)
        appended.disconnect(hears)
    assert heard == [(run, 7)]


def test_the_group_of_a_run_has_a_lawful_name() -> None:
    InMemoryChannelLayer().require_valid_group_name(live.group_of(fresh_id()))
