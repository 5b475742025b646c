"""How late a viewer hears of a committed event: 50 sockets on one run, 20 events a second, a fifth of the
clients losing their connection twice a block, beside the floor of the load generator's own sockets.

Half of the viewers are programs with keys, half are pages: a session's cookie, the page's origin, the rows of
the timeline as markup. `python -m bench live` prints what was delivered of what was to be delivered, and the
50th, 95th and 99th percentile of the time from before an event's commit to its arrival with each of them, of
the commit itself, and of the floor. Clients go on from their cursors. Judged is that all of it was delivered,
each once and in order, and that 95 of 100 events arrived within 150 ms, with programs and with pages.
"""

import asyncio
import json
import os
import random
import re
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
from django.conf import settings
from django.db import connection
from django.test import Client
from websockets.asyncio.client import ClientConnection, connect

from bench.servers import ROOT
from bench.thresholds import judge
from config.devstack import process_specs
from config.devstack.embedded import EmbeddedValkey
from orchestrator.core.common.goal import Goal
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from orchestrator.runs.models.run import Run
from tenancy.actions import add_member, add_person, create_key, create_tenant, principal_of
from tenancy.core.roles import Role
from tenancy.db.clock import database_now
from tenancy.db.statement_batch import Batch
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import Person
from traces.actions import append_transitions
from traces.core.events.trace_events import RunPaused
from traces.core.integrity.chain import Head, TraceEntry, UnchainedTransition, link_transitions
from traces.live import publish_event_hint
from traces.live.feeds import Cursor, extract_sequence

VIEWERS, DROPPING, DROPS = 50, 10, 2
A_SECOND, EVENTS, FLOOR_EVENTS, BLOCKS = 20, 200, 100, 3
BOUND_MS = 150.0
PATIENCE_SECONDS = 60.0


ROW = re.compile(r'id="row-([0-9]+)"(.*?)</li>', re.DOTALL)
BEGUN = re.compile(r">reason ([0-9]+)<")


class House(NamedTuple):
    """A tenant with one run, and who reads it, by keys and by the cookies of sessions: a principal has so
    many sockets and no more."""

    tenant: UUID
    run: UUID
    keys: tuple[str, ...]
    cookies: tuple[str, ...]


class Heard(NamedTuple):
    """What one viewer heard: sequence numbers in order, and how late each was, in milliseconds."""

    seqs: list[int]
    late: list[float]
    page: bool = False


def measure(superuser: psycopg.Connection) -> None:
    """Alternate floor and house, print, and judge."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    house = _house()
    os.environ["INTERLOCK_SECRET_KEY"] = settings.SECRET_KEY
    with _valkey() as url, _child("bench.echo", url) as floor, _child("config.devstack.serve", url) as base:
        floors: list[float] = []
        lates: dict[str, list[float]] = {"a program": [], "a page": []}
        commits: list[float] = []
        delivered = expected = 0
        for _ in range(BLOCKS):
            floors += [late for heard in asyncio.run(_floor(floor)) for late in heard.late]
            seqs, block = _block(base, house, commits)
            for heard in block:
                lates["a page" if heard.page else "a program"] += heard.late
            expected += len(seqs) * len(block)
            delivered += sum(len(seqs) for heard in block if heard.seqs == seqs)
    print(f"{VIEWERS} viewers, every other one a page, x {A_SECOND} events/s;", end=" ")
    print(f"{DROPPING} of them drop {DROPS} times a block")
    print(f"  {'':22}{'p50':>8}{'p95':>8}{'p99':>8}")
    heard_by = {f"commit to {who}, ms": late for who, late in lates.items()}
    rows = heard_by | {"of it the commit, ms": commits, "floor of sockets, ms": floors}
    for name, values in rows.items():
        at = quantiles(values, n=100)
        print(f"  {name:22}{at[49]:8.1f}{at[94]:8.1f}{at[98]:8.1f}")
    judged(delivered, expected, lates)


def judged(delivered: int, expected: int, lates: dict[str, list[float]]) -> None:
    """The verdicts: nothing is missing, and 95 of 100 were in time with each sort of viewer. Milliseconds."""
    judge(f"delivered, each once and in order: {delivered:,} of {expected:,}", held=0 < expected == delivered)
    for who, late in lates.items():
        p95 = quantiles(late, n=100)[94] if len(late) > 1 else float("inf")
        told = f"95 of 100 events arrive with {who} within {p95:.1f} ms, bound {BOUND_MS:.0f}"
        judge(told, held=p95 <= BOUND_MS)


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
    page, last = number % 2 == 1, first + EVENTS
    heard, after = Heard([], [], page), str(first) if page else first
    places = sorted(random.sample(range(first + 1, last), DROPS if number < DROPPING else 0))
    if page:
        headers = {"Cookie": house.cookies[number % len(house.cookies)], "Origin": f"http://{base}"}
        wanted: dict[str, Any] = {"html": True, "view": "timeline", "zone": "UTC"}
    else:
        headers = {"Authorization": f"Bearer {house.keys[number % len(house.keys)]}"}
        wanted = {}
    while extract_sequence(after) < last:
        async with connect(f"ws://{base}/ws/runs/{house.run}", additional_headers=headers) as socket:
            await socket.send(json.dumps({"after": after, **wanted}))
            stop = places.pop(0) if places else last
            after = await _take(socket, heard, after, stop, ready)
            if extract_sequence(after) < last:
                socket.transport.abort()
    return heard


async def _take(
    socket: ClientConnection, heard: Heard, after: Cursor, stop: int, ready: asyncio.Semaphore
) -> Cursor:
    """Take frames until a sequence number; where the cursor then stands."""
    while extract_sequence(after) < stop:
        frame: dict[str, Any] = json.loads(await socket.recv())
        now = monotonic_ns()
        ready.release()
        assert str(frame["after"]) == str(after)
        after = frame["seq"]
        for seq, begun in _rows(frame["html"]) if heard.page and "html" in frame else _events(frame):
            heard.seqs.append(seq)
            heard.late.append((now - begun) / 1e6)
    return after


def _events(frame: dict[str, Any]) -> list[tuple[int, int]]:
    return [(event["seq"], int(event["payload"]["reason"])) for event in frame.get("events", ())]


def _rows(html: str) -> list[tuple[int, int]]:
    """The rows of a frame, each with when its commit began, which is the reason that it shows."""
    return [(int(seq), int(BEGUN.findall(row)[0])) for seq, row in ROW.findall(html)]


def _write(house: House, events: int, commits: list[float]) -> None:
    """Commit events at an even pace, each announced, as the ring does."""
    started = monotonic()
    for number in range(events):
        sleep(max(0.0, started + number / A_SECOND - monotonic()))
        with tenant_transaction(house.tenant):
            run = Run.objects.select_for_update().get(id=house.run)
            begun = monotonic_ns()
            seq = _event(house, run, str(begun))
        commits.append((monotonic_ns() - begun) / 1e6)
        publish_event_hint(house.tenant, house.run, seq)
    connection.close()


def _event(house: House, run: Run, reason: str) -> int:
    head = Head(
        run=run.id, record_number=run.record_number, record_hash=bytes(run.record_hash),
        event_seq=run.event_seq, event_hash=bytes(run.event_hash),
    )  # fmt: skip
    said = TraceEntry(phase=1, actor="interlock", body=RunPaused(reason=reason))
    move = UnchainedTransition(
        source=run.position, outcome="ok", guard=None, target=run.position, phase=1, patch={}, said=(said,),
        effects=(),
    )  # fmt: skip
    linked = link_transitions(
        head, [move], core_version=1, event_digest="", headroom=None, binds={}, at=database_now()
    )
    with Batch(raw_cursor()) as batch:
        append_transitions(house.tenant, linked, batch=batch)
    Run.objects.filter(id=run.id).update(
        record_number=linked.head.record_number, record_hash=linked.head.record_hash,
        event_seq=linked.head.event_seq, event_hash=linked.head.event_hash, version=run.version + 1,
    )  # fmt: skip
    return linked.head.event_seq


def _head(house: House) -> int:
    with tenant_transaction(house.tenant):
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
    seed_tenant(house.id)
    with tenant_transaction(house.id):
        principal = principal_of(house.id, person)
    who = Submitter(principal=principal.id, owner=person.id, scopes=("submit", "read"))
    submitted = submit_task(house.id, who, Submission(workflow="tool-loop", goal=Goal(objective="Watched")))
    keys = tuple(create_key(house.id, Role.AUDITOR).clear for _ in range(10))
    readers = [add_person(f"live-{n}@bench.example", "bench", None) for n in range(4)]
    for reader in readers:
        add_member(house.id, reader, Role.OPERATOR)
    return House(house.id, submitted.run, keys, tuple(map(_session, readers)))


def _session(person: Person) -> str:
    client = Client()
    client.force_login(person)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


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
    port = process_specs.free_port()
    told = os.environ | {"REDIS_URL": redis_url, "INTERLOCK_PORT": str(port), "INTERLOCK_POOL": "1"}
    process = subprocess.Popen([sys.executable, "-m", module, str(port)], cwd=ROOT, env=told)
    until = monotonic() + PATIENCE_SECONDS
    while not process_specs.is_url_responding(f"http://127.0.0.1:{port}/livez", at_all=True):
        assert monotonic() < until, module
        assert process.poll() is None, module
        sleep(0.05)
        if module == "bench.echo" and process_specs.port_taken("127.0.0.1", port):
            break
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)
