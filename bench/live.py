"""How late a viewer hears of a committed event: 50 sockets on one run, 20 events a second, a fifth of the
clients losing their connection twice a block, beside the floor of the load generator's own sockets.

`python -m bench live` prints what was delivered of what was to be delivered, and the 50th, 95th and 99th
percentile of the time from before an event's commit to its arrival, of the commit itself, and of the floor.
Clients go on from their cursors. Judged is that all of it was delivered, each once and in order, and that 95
of 100 events arrived within 150 ms.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from threading import Thread
from time import monotonic, monotonic_ns, sleep
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer  # type: ignore[import-untyped]
from django.db import connection
from websockets.asyncio.client import ClientConnection, connect

from bench.judging import judge
from bench.servers import ROOT
from config import plan
from config.embedded import EmbeddedValkey
from orchestrator.actions.seed import furnish
from orchestrator.actions.submit import Submission, Submitter, submit_task
from orchestrator.core.goal import Goal
from orchestrator.models import Run
from tenancy.actions import add_member, add_person, create_key, create_tenant, principal_of
from tenancy.batch import Batch
from tenancy.clock import database_now
from tenancy.context import raw_cursor, tenant
from tenancy.core.roles import Role
from traces.actions import append
from traces.core.chain import Head, Move, Said, link
from traces.core.events import RunPaused
from traces.live import announce

VIEWERS, DROPPING, DROPS = 50, 10, 2
A_SECOND, EVENTS, FLOOR_EVENTS, BLOCKS = 20, 200, 100, 3
BOUND_MS = 150.0
PATIENCE_SECONDS = 60.0


class House(NamedTuple):
    """A tenant with one run, and keys that read it: a principal has so many sockets and no more."""

    tenant: UUID
    run: UUID
    keys: tuple[str, ...]


class Heard(NamedTuple):
    """What one viewer heard: sequence numbers in order, and how late each was, in milliseconds."""

    seqs: list[int]
    late: list[float]


def measure(superuser: psycopg.Connection) -> None:
    """Alternate floor and house, print, and judge."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    house = _house()
    with _valkey() as url, _child("bench.echo", url) as floor, _child("config.serve", url) as base:
        floors: list[float] = []
        lates: list[float] = []
        commits: list[float] = []
        delivered = expected = 0
        for _ in range(BLOCKS):
            floors += [late for heard in asyncio.run(_floor(floor)) for late in heard.late]
            seqs, block = _block(base, house, commits)
            lates += [late for heard in block for late in heard.late]
            expected += len(seqs) * len(block)
            delivered += sum(len(seqs) for heard in block if heard.seqs == seqs)
    print(f"{VIEWERS} viewers x {A_SECOND} events/s, {DROPPING} of them dropping {DROPS} times a block")
    print(f"  {'':22}{'p50':>8}{'p95':>8}{'p99':>8}")
    rows = {"commit to viewer, ms": lates, "of it the commit, ms": commits, "floor of sockets, ms": floors}
    for name, values in rows.items():
        at = quantiles(values, n=100)
        print(f"  {name:22}{at[49]:8.1f}{at[94]:8.1f}{at[98]:8.1f}")
    judged(delivered, expected, lates)


def judged(delivered: int, expected: int, lates: list[float]) -> None:
    """The verdicts: nothing is missing, and 95 of 100 were in time. Milliseconds."""
    judge(f"delivered, each once and in order: {delivered:,} of {expected:,}", held=0 < expected == delivered)
    p95 = quantiles(lates, n=100)[94] if len(lates) > 1 else float("inf")
    judge(f"95 of 100 events arrive within {p95:.1f} ms, bound {BOUND_MS:.0f}", held=p95 <= BOUND_MS)


def _block(base: str, house: House, commits: list[float]) -> tuple[list[int], list[Heard]]:
    """One block: the sequence numbers committed, and what each viewer heard. How long each commit took is
    added to `commits`."""
    first = _head(house)
    writing = Thread(target=_write, args=(house, EVENTS, commits))
    heard = asyncio.run(_watch(base, house, first, writing))
    writing.join()
    return list(range(first + 1, first + EVENTS + 1)), heard


async def _watch(base: str, house: House, first: int, writing: Thread) -> list[Heard]:
    ready = asyncio.Semaphore(0)
    viewers = [asyncio.create_task(_viewer(base, house, number, first, ready)) for number in range(VIEWERS)]
    for _ in viewers:
        await ready.acquire()
    writing.start()
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await asyncio.gather(*viewers)


async def _viewer(base: str, house: House, number: int, first: int, ready: asyncio.Semaphore) -> Heard:
    """Follow from `first` to the last event; the first few drop the connection at random places."""
    heard, after, last = Heard([], []), first, first + EVENTS
    places = sorted(random.sample(range(first + 1, last), DROPS if number < DROPPING else 0))
    headers = {"Authorization": f"Bearer {house.keys[number % len(house.keys)]}"}
    while after < last:
        async with connect(f"ws://{base}/ws/runs/{house.run}", additional_headers=headers) as socket:
            await socket.send(json.dumps({"after": after}))
            stop = places.pop(0) if places else last
            after = await _take(socket, heard, after, stop, ready)
            if after < last:
                socket.transport.abort()
    return heard


async def _take(
    socket: ClientConnection, heard: Heard, after: int, stop: int, ready: asyncio.Semaphore
) -> int:
    """Take frames until a sequence number; where the cursor then stands."""
    while after < stop:
        frame: dict[str, Any] = json.loads(await socket.recv())
        now = monotonic_ns()
        ready.release()
        assert frame["after"] == after
        after = frame["seq"]
        for event in frame.get("events", ()):
            heard.seqs.append(event["seq"])
            heard.late.append((now - int(event["payload"]["reason"])) / 1e6)
    return after


def _write(house: House, events: int, commits: list[float]) -> None:
    """Commit events at an even pace, each announced, as the ring does."""
    started = monotonic()
    for number in range(events):
        sleep(max(0.0, started + number / A_SECOND - monotonic()))
        with tenant(house.tenant):
            run = Run.objects.select_for_update().get(id=house.run)
            begun = monotonic_ns()
            seq = _event(house, run, str(begun))
        commits.append((monotonic_ns() - begun) / 1e6)
        announce(house.tenant, house.run, seq)
    connection.close()


def _event(house: House, run: Run, reason: str) -> int:
    head = Head(
        run=run.id, record_number=run.record_number, record_hash=bytes(run.record_hash),
        event_seq=run.event_seq, event_hash=bytes(run.event_hash),
    )  # fmt: skip
    said = Said(phase=1, actor="interlock", body=RunPaused(reason=reason))
    move = Move(
        source=run.position, outcome="ok", guard=None, target=run.position, phase=1, patch={}, said=(said,),
        effects=(),
    )  # fmt: skip
    linked = link(head, [move], core_version=1, event_digest="", headroom=None, binds={}, at=database_now())
    with Batch(raw_cursor()) as batch:
        append(house.tenant, linked, batch=batch)
    Run.objects.filter(id=run.id).update(
        record_number=linked.head.record_number, record_hash=linked.head.record_hash,
        event_seq=linked.head.event_seq, event_hash=linked.head.event_hash, version=run.version + 1,
    )  # fmt: skip
    return linked.head.event_seq


def _head(house: House) -> int:
    with tenant(house.tenant):
        return Run.objects.get(id=house.run).event_seq


async def _floor(base: str) -> list[Heard]:
    """The same sockets and the same pace, with nothing behind them but a loop over queues."""

    async def viewer() -> Heard:
        heard = Heard([], [])
        async with connect(f"ws://{base}/viewer") as socket:
            await socket.send("{}")
            while len(heard.seqs) < FLOOR_EVENTS:
                frame = json.loads(await socket.recv())
                heard.seqs.append(frame["seq"])
                heard.late.append((monotonic_ns() - frame["at"]) / 1e6)
        return heard

    viewers = [asyncio.create_task(viewer()) for _ in range(VIEWERS)]
    await asyncio.sleep(1)
    async with connect(f"ws://{base}/source") as source:
        for seq in range(1, FLOOR_EVENTS + 1):
            frame = {"after": seq - 1, "seq": seq, "at": monotonic_ns(), "text": "x" * 800}
            await source.send(json.dumps(frame))
            await asyncio.sleep(1 / A_SECOND)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await asyncio.gather(*viewers)


def _house() -> House:
    house = create_tenant("bench-live", "bench-live")
    person = add_person("live@bench.example", "bench", None)
    add_member(house.id, person, Role.OPERATOR)
    furnish(house.id)
    with tenant(house.id):
        principal = principal_of(house.id, person)
    who = Submitter(principal=principal.id, owner=person.id, scopes=("submit", "read"))
    submitted = submit_task(house.id, who, Submission(workflow="tool-loop", goal=Goal(objective="Watched")))
    keys = tuple(create_key(house.id, Role.AUDITOR).clear for _ in range(10))
    return House(house.id, submitted.run, keys)


@contextmanager
def _valkey() -> Iterator[str]:
    server = EmbeddedValkey(Path(os.environ["INTERLOCK_DATA_DIR"]))
    server.start()
    hosts = [{"address": server.url, "socket_timeout": 60}]
    layers: Any = channel_layers
    layers.set("default", RedisPubSubChannelLayer(hosts=hosts, prefix="interlock"))
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def _child(module: str, redis_url: str) -> Iterator[str]:
    """A server in a process of its own; its host and port."""
    port = plan.free_port()
    told = os.environ | {"REDIS_URL": redis_url, "INTERLOCK_PORT": str(port), "INTERLOCK_POOL": "1"}
    process = subprocess.Popen([sys.executable, "-m", module, str(port)], cwd=ROOT, env=told)
    until = monotonic() + PATIENCE_SECONDS
    while not plan.answers(f"http://127.0.0.1:{port}/livez", at_all=True):
        assert monotonic() < until, module
        assert process.poll() is None, module
        sleep(0.05)
        if module == "bench.echo" and plan.port_taken("127.0.0.1", port):
            break
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)
