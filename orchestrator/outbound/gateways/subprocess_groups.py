"""Processes that this one starts, each the first of a group of its own (P11, R-TOOL-19)."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def spawn_process_group(*argv: str, **how: Any) -> Process:
    """`asyncio.create_subprocess_exec` in a session of its own. Whoever is cancelled meanwhile leaves nothing
    behind: the library would end the first process alone, and wait for whoever holds its streams. Raises
    OSError where it cannot be started."""
    creating = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, start_new_session=True, **how))
    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        await run_to_completion(_kill_created_group(creating))
        raise


async def run_to_completion(work: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, however often whoever waits for it is cancelled; then they are."""
    doing, cancelled = asyncio.ensure_future(work), False
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            cancelled = True
    doing.result()
    if cancelled:
        raise asyncio.CancelledError


def kill_process_group(process: Process) -> None:
    """End a process and all of its group at once."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def kill_group_and_wait(process: Process) -> None:
    """End it and its group, and wait until it is gone. What made a session of its own is not of the group."""
    kill_process_group(process)
    transport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001
    # Its end is told only once its streams have ended, and what is left in them nobody reads.
    for stream in range(3):
        if (pipe := transport.get_pipe_transport(stream)) is not None:
            pipe.close()
    await process.wait()
    transport.close()


async def _kill_created_group(creating: "asyncio.Future[Process]") -> None:
    with suppress(OSError):
        await kill_group_and_wait(await creating)
