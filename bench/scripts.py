"""How long a small script takes in the system's isolation, and by its interpreter alone."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter

from bench.thresholds import judge

TIMES = 30
MOST_ADDED_SECONDS = 0.5


def measure() -> None:
    """Both ways in turn, so that what else the machine does falls on both alike."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from orchestrator.tools.gateways.sandbox import bubblewrap, monty_scripts  # noqa: PLC0415 - needs settings

    if why := bubblewrap.explain_unavailability():
        print(f"nothing is measured: {why}")
        return
    alone: list[float] = []
    apart: list[float] = []
    for _ in range(TIMES):
        alone.append(asyncio.run(_seconds_of(monty_scripts.run_bare)))
        apart.append(asyncio.run(_seconds_of(monty_scripts.run_apart)))
    for words, found in (("by its interpreter alone", alone), ("in isolation", apart)):
        found.sort()
        worst = found[int(0.95 * TIMES)]
        print(f"{words}: median {1000 * median(found):.0f} ms, 95th percentile {1000 * worst:.0f} ms")
    added = median(apart) - median(alone)
    judge(f"isolation adds {1000 * added:.0f} ms to a script, at most 500", held=added <= MOST_ADDED_SECONDS)


async def _seconds_of(run: Callable[[str], Awaitable[object]]) -> float:
    began = perf_counter()
    await run("sum([1, 2])")
    return perf_counter() - began
