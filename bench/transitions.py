"""How fast one worker process drives `tool-loop` through 200 read-only calls, one per reply, beside the floor
F.

`python -m bench transitions` prints commits, transitions and effects per second, commits per effect, bytes
of rows per transition (payloads apart) early and late in a run, and the ratio to F, measured in
alternating blocks of the same run: with one run at a time, with four at once, and with as many as one tenant
may have in hand of the threads that a worker has. A block's time is the worker's: its runs were submitted
before, and its threads and their connections are warm, as the floor's is.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple
from uuid import UUID

import psycopg
from django.conf import settings

from bench.baseline import Floor
from bench.thresholds import judge
from orchestrator import bundled_content
from orchestrator.core.common.goal import Goal
from orchestrator.publishing.actions.seed import seed_tenant
from orchestrator.publishing.actions.versions import publish_boundary, publish_workflow
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from orchestrator.runs.models.run import Run
from orchestrator.worker.fair_scheduler import share_of
from orchestrator.worker.heartbeat import Heartbeat
from orchestrator.worker.huge_pages import use_large_pages
from orchestrator.worker.process import make_worker
from orchestrator.worker.run_loop import Worker
from tenancy.actions import add_member, add_person, create_tenant, principal_of
from tenancy.core.roles import Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Principal

BLOCKS = 5
FLOOR_COMMITS = 400
AT_ONCE = 4
# Runs of which nothing but how level they are is measured.
ALONE = 16
# Commits beside F, for as many runs as one tenant may have in hand; how much a late transition may differ.
WANTED, TENTH = 0.4, 0.1
# A block is one slice, however busy the machine is: nobody is here to take up a run that was given back.
SLICE_SECONDS = 600.0
WIDE: dict[str, Decimal | None] = {
    name: Decimal(10) ** 7
    for name in (
        "steps",
        "model_turns",
        "tool_calls",
        "external_calls",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "wall_clock_seconds",
        "cost_usd",
    )
}
TABLES = ("traces_record", "traces_event", "orchestrator_intent", "budgets_entry")
WITHIN = """
SELECT coalesce(sum(pg_column_size(r.*)), 0) FROM {} r
 WHERE run_id = %(run)s AND at >= %(a)s AND at < %(b)s"""
SNAPSHOTS = """
SELECT coalesce(sum(pg_column_size(s.*)), 0) FROM traces_snapshot s
  JOIN traces_record r ON r.run_id = s.run_id AND r.number = s.number
 WHERE s.run_id = %(run)s AND r.at >= %(a)s AND r.at < %(b)s"""
COUNT = "SELECT count(*) FROM traces_record WHERE run_id = %(run)s AND at >= %(a)s AND at < %(b)s"


class Block(NamedTuple):
    """What one block measured. Rates are per second of the block, `floor` is F right before it, `cpu` and
    `floor_cpu` are milliseconds of this process's processor a commit, `besides` is how many commits a run
    made on average beyond one an effect."""

    floor: float
    commits: float
    transitions: float
    effects: float
    cpu: float
    floor_cpu: float
    per_effect: float
    besides: float
    last: UUID


def measure(superuser: psycopg.Connection) -> None:
    """Run the blocks and print."""
    settings.INTERLOCK_SLICE_SECONDS = SLICE_SECONDS
    house, who = _house()
    worker, heartbeat = make_worker(), Heartbeat()
    heartbeat.start()
    floor = Floor(superuser)
    floor.block(200)
    share = share_of(settings.INTERLOCK_WORKER_THREADS)
    blocks: dict[int, list[Block]] = {1: [], AT_ONCE: [], share: []}
    # One for all: each thread keeps a connection, of which a process has a few more than threads.
    pool = ThreadPoolExecutor(max(blocks))
    for runs in blocks:
        _block(superuser, floor, (house, who, worker), (pool, runs))
    print(f"{(use_large_pages() or 0) >> 20} MiB of this process in large pages")
    for _ in range(BLOCKS):
        for runs, measured in blocks.items():
            measured.append(_block(superuser, floor, (house, who, worker), (pool, runs)))
    for runs, measured in blocks.items():
        _print(runs, measured)
    alone = [_submitted(house, who) for _ in range(ALONE)]
    for run in alone:
        pool.submit(worker.advance, run).result()
        _ended(house, run)
    _flatness(superuser, [*alone, *(block.last for block in blocks[1])])
    heartbeat.stop()
    most = median(block.commits / block.floor for block in blocks[share])
    judge(f"{share} runs at once commit at {WANTED} F at least: {most:.3f}", held=most >= WANTED)
    besides = max(block.besides for measured in blocks.values() for block in measured)
    judge(f"one commit an effect, and one that ends a run: {besides:.2f}", held=besides <= 1)


def _block(
    superuser: psycopg.Connection,
    floor: Floor,
    with_what: tuple[UUID, Principal, Worker],
    threads: tuple[ThreadPoolExecutor, int],
) -> Block:
    """F, then as many runs at once as there are threads."""
    house, who, worker = with_what
    pool, runs = threads
    spent = process_time()
    before = floor.block(FLOOR_COMMITS)
    floor_cpu = (process_time() - spent) / FLOOR_COMMITS
    ids = [_submitted(house, who) for _ in range(runs)]
    started, spent = perf_counter(), process_time()
    list(pool.map(worker.advance, ids))
    seconds, spent = perf_counter() - started, process_time() - spent
    driven = [_ended(house, run) for run in ids]
    effects = _number(
        superuser, "SELECT count(*) FROM orchestrator_intent WHERE run_id = ANY(%(runs)s)", {"runs": ids}
    )
    commits = sum(run.version for run in driven)
    return Block(
        floor=before,
        commits=commits / seconds,
        transitions=sum(run.record_number for run in driven) / seconds,
        effects=effects / seconds,
        cpu=spent / commits * 1000,
        floor_cpu=floor_cpu * 1000,
        per_effect=commits / effects,
        besides=(commits - effects) / runs,
        last=ids[-1],
    )


def _print(runs: int, blocks: list[Block]) -> None:
    ratio = median(block.commits / block.floor for block in blocks)
    columns = list(zip(*blocks, strict=True))[:6]
    floor, commits, transitions, effects, cpu, floor_cpu = (median(column) for column in columns)
    print(f"{runs} at a time")
    print(f"  floor F             {floor:8.0f} commits/s")
    print(f"  commits             {commits:8.0f} /s   = {ratio:.2f} F, of {BLOCKS} blocks")
    print(f"  processor           {cpu:8.2f} ms a commit here, {floor_cpu:.2f} ms a commit of F")
    print(f"  transitions         {transitions:8.0f} /s")
    print(f"  effects             {effects:8.0f} /s   {blocks[-1].per_effect:.3f} commits per effect")


def _flatness(superuser: psycopg.Connection, runs: Sequence[UUID]) -> None:
    """Bytes of rows and time per transition over transitions 1-100 and 1 001-1 100: of a hundred alone one
    run says little, so the medians of these."""
    early = [_stretch(superuser, run, 1, 100) for run in runs]
    late = [_stretch(superuser, run, 1001, 1100) for run in runs]
    for name, stretches in (("1-100", early), ("1 001-1 100", late)):
        size, milliseconds = (median(column) for column in zip(*stretches, strict=True))
        print(f"transitions {name:<12} {size:8.0f} bytes of rows and {milliseconds:.2f} ms each")
    for what, column in (("bytes", 0), ("time", 1)):
        grown = median(after[column] / before[column] for before, after in zip(early, late, strict=True))
        # Growth along a run is what is looked for; less is none.
        judge(
            f"late over early in {what}, no tenth more, the median of {len(runs)} runs: {grown:.3f}",
            held=grown < 1 + TENTH,
        )


def _stretch(superuser: psycopg.Connection, run: UUID, first: int, last: int) -> tuple[float, float]:
    query = "SELECT at FROM traces_record WHERE run_id = %s AND number = ANY(%s) ORDER BY number"
    (a,), (b,) = superuser.execute(query, (run, [first, last + 1])).fetchall()
    keys = {"run": run, "a": a, "b": b}
    sizes = [_number(superuser, WITHIN.format(table), keys) for table in TABLES]
    total = sum(sizes) + _number(superuser, SNAPSHOTS, keys)
    number = _number(superuser, COUNT, keys)
    return total / number, (b - a).total_seconds() * 1000 / number


def _number(superuser: psycopg.Connection, query: str, keys: Mapping[str, object]) -> float:
    row = superuser.execute(query.encode(), keys).fetchone()
    return float(row[0]) if row is not None else 0.0


def _submitted(house: UUID, who: Principal) -> UUID:
    submitter = Submitter(principal=who.id, owner=who.owner_id, scopes=("submit",))
    goal = Goal(objective="Count to 200")
    return submit_task(house, submitter, Submission(workflow="bench-loop", goal=goal)).run


def _ended(house: UUID, run: UUID) -> Run:
    with tenant_transaction(house):
        found = Run.objects.get(id=run)
    assert found.terminal_code == "SUCCESS", (found.terminal_code, found.reason)
    return found


def _house() -> tuple[UUID, Principal]:
    house = create_tenant("bench", "Bench")
    seed_tenant(house.id)
    person = add_person("bench@bench.example", "bench")
    add_member(house.id, person, Role.OPERATOR)
    with tenant_transaction(house.id):
        wide = bundled_content.get_bundled_boundary("tool-loop-default").evolve(slug="bench", budget=WIDE)
        publish_boundary(house.id, wide, by=None)
        loop = bundled_content.get_bundled_workflow("tool-loop").evolve(
            slug="bench-loop", boundary="bench", scenario="count", tools=("calculator.*",), budget={}
        )
        publish_workflow(house.id, loop, by=None)
        return house.id, principal_of(house.id, person)
