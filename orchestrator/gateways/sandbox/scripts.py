"""Small scripts in a subset of Python that has no way out (R-TOOL-19): no files, no sockets, no processes, no
imports but a few pure modules, and limits on time, memory and depth (Monty).

It needs nothing of the machine. The interpreter is a program of its own, started for one script and ended
with it.
"""

import os
import re
import resource
import sys
import sysconfig
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from orchestrator.gateways.clock import steady
from orchestrator.gateways.processes import started
from orchestrator.gateways.sandbox import bubblewrap
from orchestrator.gateways.sandbox.following import Followed
from orchestrator.gateways.sandbox.limits import Ended, Job, Limits

LIMITS = Limits(
    seconds=6.0, cpu_seconds=6, memory_bytes=256 * 1024 * 1024, processes=1, output_bytes=64 * 1024
)
SECONDS, MEGABYTES, DEPTH = 5, 64, 200
# Before the value of the last expression the program says how long it took.
_PLACE = re.compile(r"/dev/fd/\d+|/code/script\.py")
_LAST = re.compile(r"(?:^|\n)[0-9.]+\S{1,2} ❯ (.*)\Z", re.DOTALL)


@cache
def unavailable() -> str:
    """Why no script can be run here; empty where it can."""
    if sys.platform != "linux":
        return "scripts are run on Linux alone"
    return "" if _program() is not None else "the package pydantic-monty-runtime is not installed here"


async def run(code: str, limits: Limits = LIMITS) -> Ended:
    """Run a script to its end or its limits; `result` is the value of its last expression, as it is written.

    Raises FileNotFoundError where there is no interpreter of them (see `unavailable`).
    """
    program, began = _program(), steady()
    if program is None:
        raise FileNotFoundError(unavailable())
    source = os.memfd_create("script")
    try:
        with os.fdopen(os.dup(source), "wb") as file:
            file.write(code.encode())
        os.lseek(source, 0, os.SEEK_SET)
        process = await started(
            str(program), *_bounds(), f"/dev/fd/{source}",
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env={}, cwd="/", pass_fds=(source,),
        )  # fmt: skip
    finally:
        os.close(source)
    with suppress(ProcessLookupError, PermissionError):
        _bound(process.pid, limits)
    followed = Followed(process, limits)
    heard = await followed.until_the_end()
    said, value = _parted(bytes(heard[1].head))
    return Ended(
        why=followed.why, status=process.returncode if followed.why == "ended" else None,
        stdout=bytes(heard[0].head), stderr=said, seconds=steady() - began,
        cut=any(one.size > one.most for one in heard), result=value,
    )  # fmt: skip


async def run_apart(code: str, limits: Limits = LIMITS) -> Ended:
    """The same in a sandbox of the machine around it. Raises bubblewrap.Unavailable."""
    program = _program()
    if program is None:
        raise bubblewrap.Unavailable(unavailable())
    # The interpreter keeps more room than a script may use.
    around = replace(limits, memory_bytes=4 * limits.memory_bytes, processes=4)
    job = Job(
        argv=(f"/packages/{program.name}", *_bounds(), "/code/script.py"),
        files={"code/script.py": code.encode()}, limits=around, programs=(str(program),),
    )  # fmt: skip
    ended = await bubblewrap.run(job)
    said, value = _parted(ended.stderr)
    return replace(ended, stderr=said, result=value)


def _bounds() -> tuple[str, ...]:
    return (
        "--max-feed-duration", str(SECONDS), "--max-memory", f"{MEGABYTES}MB",
        "--max-recursion-depth", str(DEPTH), "--max-suspensions", "100", "--max-total-sleep", "0",
        "--max-sleep", "0",
    )  # fmt: skip


def _bound(pid: int, limits: Limits) -> None:
    """Limits of the operating system around those of the interpreter."""
    for name, bound in (
        (resource.RLIMIT_CPU, limits.cpu_seconds), (resource.RLIMIT_AS, 4 * limits.memory_bytes),
        (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        resource.prlimit(pid, name, (bound, bound))


def _parted(said: bytes) -> tuple[bytes, bytes | None]:
    """What was said of faults, and the last value."""
    text = _PLACE.sub("script.py", said.decode("utf-8", "backslashreplace"))
    found = _LAST.search(text)
    if found is None:
        return text.removeprefix("error:").strip().encode(), None
    last = found[1].strip()
    before = text[: found.start()]
    if last.startswith("error:"):
        return f"{before}\n{last[6:].strip()}".strip().encode(), None
    return before.strip().encode(), None if last == "None" else last.encode()


@cache
def _program() -> Path | None:
    for place in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        if (place / "monty").is_file():
            return place / "monty"
    return None
