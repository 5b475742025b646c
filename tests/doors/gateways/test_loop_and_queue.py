"""The effect loop and the wake-up."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import cast
from uuid import UUID

import pytest
from celery import Celery
from django.db import OperationalError
from redis import Redis

from config.devstack.embedded import EmbeddedValkey
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.outbound.gateways.send_authorization import SendRefused, check_before_send
from orchestrator.runs.gateways import job_queue
from tenancy.db.ids import fresh_id
from tests.proves import proves

RUN = UUID(int=1)


@pytest.fixture
def own_loop() -> Iterator[EffectLoop]:
    """A loop that a test may stop."""
    found = EffectLoop()
    yield found
    found.stop()


async def _forever(seen: list[str]) -> None:
    seen.append("began")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


def _wait_for(seen: list[str], word: str) -> None:
    until = time.monotonic() + 5
    while word not in seen and time.monotonic() < until:
        time.sleep(0.005)
    assert word in seen


@proves("R-TOOL-11", part="deadline")
def test_work_ends_at_its_deadline(own_loop: EffectLoop) -> None:
    seen: list[str] = []
    with pytest.raises(TimeoutError):
        own_loop.run(_forever(seen), 50)
    assert seen == ["began", "cancelled"]


@proves("R-TOOL-11", part="cancellation")
def test_cancelling_the_future_cancels_the_work(own_loop: EffectLoop) -> None:
    seen: list[str] = []
    future = own_loop.submit(_forever(seen))
    _wait_for(seen, "began")
    future.cancel()
    _wait_for(seen, "cancelled")


def test_stopping_ends_the_work_and_closes_the_clients(own_loop: EffectLoop) -> None:
    seen: list[str] = []

    async def close() -> None:
        seen.append("closed")

    async def open_client() -> int:
        return own_loop.client("key", lambda: (1, close)) + own_loop.client("key", lambda: (2, close))

    assert own_loop.run(open_client(), 1_000) == 2
    future = own_loop.submit(_forever(seen))
    _wait_for(seen, "began")
    own_loop.stop()
    assert seen == ["began", "cancelled", "closed"]
    with pytest.raises(CancelledError):
        future.result(1)
    assert own_loop.run(open_client(), 1_000) == 2


def test_stopping_leaves_to_work_what_it_has_begun(own_loop: EffectLoop) -> None:
    seen: list[str] = []

    async def part() -> None:
        seen.append("began")
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            seen.append("the part was cancelled")
            raise

    async def work() -> None:
        doing = asyncio.ensure_future(part())
        try:
            await asyncio.shield(doing)
        finally:
            seen.append("the work is over")
            # A turn in which whoever cancels all tasks at once has cancelled the part already.
            await asyncio.sleep(0.05)
            seen.append("and was not hurried")
            doing.cancel()

    own_loop.submit(work())
    _wait_for(seen, "began")
    own_loop.stop()
    assert seen == ["began", "the work is over", "and was not hurried", "the part was cancelled"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_after_a_fork_the_child_has_a_loop_of_its_own(own_loop: EffectLoop) -> None:
    own_loop.start()
    child = os.fork()
    if child == 0:
        try:
            worked = own_loop.run(asyncio.sleep(0, result=7), 2_000) == 7
        finally:
            os._exit(0 if worked else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert own_loop.run(asyncio.sleep(0, result=8), 2_000) == 8


def _celery(broker: str) -> Celery:
    """A postman with this house's settings and another broker."""
    app = Celery("elsewhere", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.conf.update(broker_url=broker)
    return app


@proves("R-SESS-1", part="dead broker")
def test_a_dead_broker_is_counted_and_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "_quiet_until", 0.0)
    monkeypatch.setattr(job_queue, "current_app", _celery("redis://127.0.0.1:9/0"))
    before = Counter(TALLY.read())
    assert not any(job_queue.enqueue_run(RUN) for _ in range(50))
    # The first is the only one that looked for the broker; the others waited for nothing.
    counted = Counter(TALLY.read()) - before
    assert counted == {("queue", job_queue.ADVANCE, "failed"): 1, ("queue", job_queue.ADVANCE, "dropped"): 49}


def test_a_wake_up_names_the_job_and_the_run(monkeypatch: pytest.MonkeyPatch, valkey: EmbeddedValkey) -> None:
    monkeypatch.setattr(job_queue, "_quiet_until", 0.0)
    monkeypatch.setattr(
        job_queue, "current_app", _celery(valkey.url.replace("unix://", "redis+socket://", 1))
    )
    run = fresh_id()
    assert job_queue.enqueue_run(run)
    with Redis.from_url(valkey.url) as client:
        # Other tests post to the same queue and nobody empties it: ours is the one that names our run.
        posted = [json.loads(one) for one in cast("list[bytes]", client.lrange("interlock:runs", 0, -1))]
    named = [(one["headers"]["task"], json.loads(base64.b64decode(one["body"]))[1]) for one in posted]
    assert named.count(("orchestrator.advance_run", {"run_id": str(run)})) == 1


@proves("R-BUDGET-11", part="a message is a turn")
def test_an_offer_is_a_turn_in_a_queue_of_its_own_and_names_no_run(
    monkeypatch: pytest.MonkeyPatch, valkey: EmbeddedValkey
) -> None:
    monkeypatch.setattr(job_queue, "_quiet_until", 0.0)
    monkeypatch.setattr(
        job_queue, "current_app", _celery(valkey.url.replace("unix://", "redis+socket://", 1))
    )
    with Redis.from_url(valkey.url) as client:
        before = cast("int", client.llen("interlock:turns"))
        tenant = fresh_id()
        assert job_queue.enqueue_ready(fresh_id(), tenant=tenant)
        posted = [json.loads(one) for one in cast("list[bytes]", client.lrange("interlock:turns", 0, -1))]
    assert len(posted) == before + 1
    assert posted[0]["headers"]["task"] == "orchestrator.take_turn"
    assert json.loads(base64.b64decode(posted[0]["body"]))[1] == {"tenant": str(tenant)}


class _NoDatabase:
    run = UUID(int=7)

    def check(self) -> SendRefused | None:
        raise OperationalError


@proves("R-BUDGET-17", part="no answer is no permit")
def test_a_database_that_cannot_be_asked_has_not_permitted() -> None:
    refused = check_before_send(_NoDatabase())
    assert refused is not None
    assert refused.transient
