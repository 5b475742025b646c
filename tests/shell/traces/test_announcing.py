"""Hints after a commit: coalesced, delivered, and lost without anybody noticing."""

import asyncio
import time
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from channels.layers import InMemoryChannelLayer

from tenancy.db.ids import fresh_id
from traces.live import hints as live
from traces.signals import appended

PATIENCE_SECONDS = 60.0


class Layer:
    """A channel layer that keeps what it is sent, after some delay or once it may, or fails."""

    def __init__(self, *, delay: float = 0.0, fails: bool = False, go: Event | None = None) -> None:
        self.delay, self.fails, self.go = delay, fails, go
        self.asked: set[str] = set()
        self.messages: list[tuple[str, dict[str, Any]]] = []

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Keep it."""
        self.asked.add(group)
        await asyncio.sleep(self.delay)
        if self.go is not None:
            await asyncio.to_thread(self.go.wait, PATIENCE_SECONDS)
        if self.fails:
            raise ConnectionError
        self.messages.append((group, message))


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> live.Publisher:
    """A publisher of this test's own. Those of the tests before it live on, and may still say what they were
    told: each test has a tenant of its own."""
    monkeypatch.setattr(live, "_publishers", [])
    return live.get_publisher()


def wait_for(happened: Any) -> None:
    """Until it happened."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_hints_that_wait_are_one_hint(publisher: live.Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, run, house = Layer(go=Event()), fresh_id(), fresh_id()
    monkeypatch.setattr(live, "get_channel_layer", lambda: layer)
    monkeypatch.setattr(live, "PATIENCE_SECONDS", PATIENCE_SECONDS)
    live.publish_event_hint(house, run, 1)
    wait_for(lambda: live.group_of(run) in layer.asked)
    # The first is on its way for as long as it takes to leave all the others.
    for seq in range(2, 50):
        live.publish_event_hint(house, run, seq)
    assert layer.go is not None
    layer.go.set()
    group = f"run.{run.hex}"
    wait_for(lambda: (group, {"type": "news", "group": group, "seq": 49}) in layer.messages)
    assert [message["seq"] for name, message in layer.messages if name == group] == [1, 49]


def test_the_lists_of_a_tenant_are_told_once_for_many_runs(
    publisher: live.Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, runs, house = Layer(), [fresh_id() for _ in range(20)], fresh_id()
    monkeypatch.setattr(live, "get_channel_layer", lambda: layer)
    # However long this takes, it is less than lists wait for their next hint.
    monkeypatch.setattr(live, "LISTS_PACE_SECONDS", 3_600.0)
    for run in runs:
        live.publish_event_hint(house, run, 1)
        time.sleep(0.005)
    wait_for(lambda: {live.group_of(run) for run in runs} <= {name for name, _ in layer.messages})
    assert [name for name, _ in layer.messages].count(live.group_of_tenant(house)) == 1


def test_a_dead_or_slow_broker_costs_hints_and_nothing_else(
    publisher: live.Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.05)
    for number, layer in enumerate((Layer(fails=True), Layer(delay=60), None), 1):
        monkeypatch.setattr(live, "get_channel_layer", lambda layer=layer: layer)
        live.publish_event_hint(fresh_id(), fresh_id(), 1)
        wait_for(lambda number=number: publisher.dropped == 2 * number)
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
        live.publish_event_hint(fresh_id(), run, 7)
    finally:
        appended.disconnect(fails)
        appended.disconnect(hears)
    assert heard == [(run, 7)]


def test_the_group_of_a_run_has_a_lawful_name() -> None:
    for group in (live.group_of(fresh_id()), live.group_of_tenant(fresh_id())):
        InMemoryChannelLayer().require_valid_group_name(group)
