"""A tool server as a child process: one of the operator's commands, no shell, a clean environment (P11).

Lines and their sum are bounded, and the whole process group ends with the call.
"""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from orchestrator.outbound.gateways.subprocess_groups import (
    kill_group_and_wait,
    run_to_completion,
    spawn_process_group,
)

LONGEST_LINE = 4 * 1024 * 1024
MOST_BYTES = 16 * 1024 * 1024
GRACE_SECONDS = 1.0
CLEAN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"}

Heard = MemoryObjectSendStream[SessionMessage | Exception]
Said = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def child_process(
    argv: tuple[str, ...], environment: Mapping[str, str]
) -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """The streams of a child process that speaks the protocol. Raises OSError where it cannot be started."""
    process = await spawn_process_group(
        *argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", env={**CLEAN, **environment},
        limit=LONGEST_LINE,
    )  # fmt: skip
    heard, hearing = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    saying, said = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, process, heard)
            tasks.start_soon(_write_messages, process, said)
            try:
                yield hearing, saying
            finally:
                tasks.cancel_scope.cancel()
    finally:
        for stream in (heard, hearing, saying, said):
            stream.close()
        with anyio.CancelScope(shield=True):
            await _terminate_process(process)


async def _read_messages(process: Process, heard: Heard) -> None:
    """Hand on one message a line. Raises ConnectionError at the end, and past the bound of a line or of all:
    whoever still waits for an answer must not wait on."""
    assert process.stdout is not None
    size = 0
    with suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while line := await process.stdout.readline():
            size += len(line)
            if size > MOST_BYTES:
                break
            await heard.send(_parse_message_line(line))
    raise ConnectionError("the command ended, or said too much")


def _parse_message_line(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        # The reason would quote what the child wrote.
        return ValueError("a line that is no message")


async def _write_messages(process: Process, said: Said) -> None:
    assert process.stdin is not None
    async with said:
        with suppress(OSError):
            async for message in said:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()


async def _terminate_process(process: Process) -> None:
    """Close its input, wait a moment, then end the whole group: nothing of it outlives the call."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
    finally:
        # Whoever is cancelled once more waits no longer, and leaves nothing.
        await run_to_completion(kill_group_and_wait(process))
