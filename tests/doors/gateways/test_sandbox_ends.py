"""Nothing in a sandbox outlives it, whoever ends it and whenever."""

import asyncio
import os
import subprocess
import time
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from orchestrator.outbound.gateways.subprocess_groups import kill_group_and_wait, spawn_process_group
from orchestrator.tools.gateways.mcp.mcp_stdio import child_process
from orchestrator.tools.gateways.sandbox import bubblewrap, resource_monitor
from orchestrator.tools.gateways.sandbox.limits import Job, Limits
from orchestrator.tools.gateways.sandbox.process_io import FollowedProcess
from tests.doors.gateways.test_sandbox import needs_sandbox
from tests.proves import proves

PATIENCE = 60
# What is read of a process: what it says, and what it complains of.
OWN_STREAMS = 2


@proves("R-TOOL-19", part="sandbox: nothing outlives it")
async def test_what_a_process_started_ends_with_it() -> None:
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "sleep 600 & echo $!; sleep 600",
        stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True,
    )  # fmt: skip
    followed = FollowedProcess(process, Limits(seconds=0.5))
    assert process.stdout is not None
    # The one in the background keeps the streams open: who waits for their end waits for its.
    async with asyncio.timeout(PATIENCE):
        # Its time is counted from when it is followed, however long a machine takes to start it.
        pid = int(await process.stdout.readline())
        await followed.until_the_end()
    assert followed.why == "timeout"
    await asyncio.to_thread(gone, pid)


@proves("R-TOOL-19", part="sandbox: nothing outlives it")
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("again", [None, 0, 1, 2, 3])
async def test_whoever_is_cancelled_while_it_starts_leaves_no_process(turns: int, again: int | None) -> None:
    mark = f"interlock-{uuid4().hex}"
    argv = ("/bin/sh", "-c", "sleep 600 & sleep 600; :", mark)
    starting = asyncio.create_task(spawn_process_group(*argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE))
    for more in (turns, again):
        for _ in range(more or 0):
            await asyncio.sleep(0)
        if more is not None:
            starting.cancel()
    async with asyncio.timeout(PATIENCE):
        with suppress(asyncio.CancelledError):
            await kill_group_and_wait(await starting)
    await asyncio.to_thread(none_left, mark)


@proves("P11", part="nothing of a tool server outlives its call")
@pytest.mark.parametrize("second", [0.0, 0.1])
async def test_a_tool_server_that_is_cancelled_twice_leaves_no_process(second: float) -> None:
    mark = f"interlock-{uuid4().hex}"
    begun = asyncio.Event()

    async def called() -> None:
        # It ignores that its input ends, so that the call is in its last second when it is cancelled again.
        async with child_process(("/bin/sh", "-c", "sleep 600; :", mark), {}):
            begun.set()
            await asyncio.sleep(PATIENCE)

    calling = asyncio.create_task(called())
    await begun.wait()
    calling.cancel()
    await asyncio.sleep(second)
    calling.cancel()
    async with asyncio.timeout(PATIENCE):
        with suppress(asyncio.CancelledError):
            await calling
    await asyncio.to_thread(none_left, mark)


@needs_sandbox
@proves("R-TOOL-19", part="sandbox: nothing outlives it")
async def test_a_sandbox_that_is_cancelled_before_it_is_followed_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = f"interlock-{uuid4().hex}"
    loop, connected = asyncio.get_running_loop(), asyncio.Event()
    connect, pipes = loop.connect_read_pipe, list[Any]()

    async def slowly(protocol: Any, pipe: Any) -> Any:
        pipes.append(pipe)
        if len(pipes) <= OWN_STREAMS:
            return await connect(protocol, pipe)
        connected.set()
        await asyncio.sleep(PATIENCE)
        raise AssertionError

    work = asyncio.create_task(
        bubblewrap.run_sandbox_job(Job(argv=("python", "-c", f"import time; time.sleep(600) # {mark}")))
    )
    with monkeypatch.context() as patched:
        # After its own streams the pipe of its report is connected; it runs already.
        patched.setattr(loop, "connect_read_pipe", slowly)
        await connected.wait()
    work.cancel()
    async with asyncio.timeout(PATIENCE):
        with suppress(asyncio.CancelledError):
            await work
    await asyncio.to_thread(none_left, mark)


@needs_sandbox
@pytest.mark.slow
@proves("R-TOOL-19", part="sandbox: it ends itself where nobody watches")
async def test_a_sandbox_that_nobody_watches_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "OVERTIME_SECONDS", 1.0)
    job = Job(argv=("python", "-c", "import time; time.sleep(600)"), limits=Limits(seconds=1.0))
    report, reporting = os.pipe()
    seccomp = bubblewrap._open_seccomp_filter()
    # The sandbox as it is started, with nobody to follow it.
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - nobody is to wait for it
            bubblewrap._build_command(bubblewrap._find_bwrap() or "", job, seccomp, reporting),
            stdin=subprocess.PIPE, pass_fds=(seccomp, reporting), env={}, cwd="/", start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(reporting)
        os.close(seccomp)
    with process, os.fdopen(report, "rb") as told:
        await asyncio.to_thread(process.communicate, bubblewrap._pack_files({}), PATIENCE)
        # It is not the work's own end that ended it.
        assert told.read() == b""


def gone(pid: int) -> None:
    """Wait until there is no such process."""
    until = time.monotonic() + PATIENCE
    with suppress(OSError):
        while "\nState:\tZ" not in (resource_monitor.PROCESSES / str(pid) / "status").read_text():
            assert time.monotonic() < until
            time.sleep(0.02)


def none_left(mark: str) -> None:
    """Wait until no process has this mark among its words, whoever its parent is."""
    until = time.monotonic() + PATIENCE
    while found := [pid for pid in pids() if mark in words(pid)]:
        assert time.monotonic() < until, found
        time.sleep(0.02)


def pids() -> list[int]:
    """Every process that there is."""
    return [int(place.name) for place in resource_monitor.PROCESSES.iterdir() if place.name.isdigit()]


def words(pid: int) -> str:
    """What a process was started with; empty where it is gone."""
    with suppress(OSError):
        return (resource_monitor.PROCESSES / str(pid) / "cmdline").read_text(errors="replace")
    return ""
