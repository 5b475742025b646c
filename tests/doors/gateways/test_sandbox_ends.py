"""Nothing in a sandbox outlives it, whoever ends it and whenever."""

import asyncio
import os
import subprocess
import time
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

import pytest

from orchestrator.gateways.processes import ended, started
from orchestrator.gateways.sandbox import bubblewrap, watching
from orchestrator.gateways.sandbox.following import Followed
from orchestrator.gateways.sandbox.limits import Job, Limits
from tests.doors.gateways.test_sandbox import needs_sandbox
from tests.proves import proves

PATIENCE = 60


@proves("R-TOOL-19", part="sandbox: nothing outlives it")
async def test_what_a_process_started_ends_with_it() -> None:
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "sleep 600 & echo $!; sleep 600",
        stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True,
    )  # fmt: skip
    followed = Followed(process, Limits(seconds=0.5))
    # The one in the background keeps the streams open: who waits for their end waits for its.
    async with asyncio.timeout(PATIENCE):
        said, _ = await followed.until_the_end()
    assert followed.why == "timeout"
    await asyncio.to_thread(gone, int(said.head))


@proves("R-TOOL-19", part="sandbox: nothing outlives it")
@pytest.mark.parametrize("turns", range(6))
async def test_whoever_is_cancelled_while_it_starts_leaves_no_process(turns: int) -> None:
    before = set(watching.family(os.getpid()))
    starting = asyncio.create_task(
        started("/bin/sh", "-c", "sleep 600 & sleep 600", stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    async with asyncio.timeout(PATIENCE):
        with suppress(asyncio.CancelledError):
            await ended(await starting)
    for pid in set(watching.family(os.getpid())) - before:
        await asyncio.to_thread(gone, pid)


@needs_sandbox
@pytest.mark.slow
@proves("R-TOOL-19", part="sandbox: it ends itself where nobody watches")
async def test_a_sandbox_that_nobody_watches_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "OVERTIME_SECONDS", 1.0)
    job = Job(argv=("python", "-c", "import time; time.sleep(600)"), limits=Limits(seconds=1.0))
    report, reporting = os.pipe()
    seccomp = bubblewrap._filter()
    # The sandbox as it is started, with nobody to follow it.
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - nobody is to wait for it
            bubblewrap._command(bubblewrap._bwrap() or "", job, seccomp, reporting),
            stdin=subprocess.PIPE, pass_fds=(seccomp, reporting), env={}, cwd="/", start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(reporting)
        os.close(seccomp)
    with process, os.fdopen(report, "rb") as told:
        await asyncio.to_thread(process.communicate, bubblewrap._packed({}), PATIENCE)
        # It is not the work's own end that ended it.
        assert told.read() == b""


def gone(pid: int) -> None:
    """Wait until there is no such process."""
    until = time.monotonic() + PATIENCE
    with suppress(OSError):
        while "\nState:\tZ" not in (watching.PROCESSES / str(pid) / "status").read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
