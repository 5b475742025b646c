"""Small scripts in a restricted subset of Python (R-TOOL-19).

A script has no files, sockets or processes and imports only a few pure modules; time, memory and depth are
limited (Monty). The interpreter is a separate program, started for one script and ended with it. The
interpreter runs in a sandbox of the operating system where the machine has one, so that a hole in the
interpreter leads nowhere. Elsewhere it runs without a sandbox, unless the operator requires one
(`INTERLOCK_SCRIPT_ISOLATION=required`).
"""

import asyncio
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

import structlog
from django.conf import settings

from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock
from orchestrator.outbound.gateways.subprocess_groups import spawn_process_group
from orchestrator.tools.gateways.sandbox import bubblewrap
from orchestrator.tools.gateways.sandbox.limits import Job, JobResult, Limits
from orchestrator.tools.gateways.sandbox.process_io import FollowedProcess

log = structlog.stdlib.get_logger(__name__)
# The interpreter reserves more address space than it uses.
LIMITS = Limits(
    seconds=6.0, cpu_seconds=6, memory_bytes=256 * 1024 * 1024, address_bytes=1024 * 1024 * 1024,
    processes=1, output_bytes=64 * 1024,
)  # fmt: skip
SECONDS, MEGABYTES, DEPTH = 5, 64, 200
# Before the value of the last expression the program prints the elapsed time.
_PLACE = re.compile(r"/dev/fd/\d+|/code/script\.py")
_LAST = re.compile(r"(?:^|\n)[0-9.]+\S{1,2} ❯ (.*)\Z", re.DOTALL)


def explain_unavailability() -> str:
    """Return why no script can be run here; empty where scripts can be run."""
    if sys.platform != "linux":
        return "scripts are run on Linux alone"
    if _find_program() is None:
        return "the package pydantic-monty-runtime is not installed here"
    if _is_isolation_required() and (why := bubblewrap.explain_unavailability()):
        return f"scripts are run in isolation alone (INTERLOCK_SCRIPT_ISOLATION), and {why}"
    return ""


def missing_isolation() -> str:
    """Return why scripts run here without an operating-system sandbox; empty where they do not."""
    return bubblewrap.explain_unavailability() if not explain_unavailability() else ""


def report_isolation() -> None:
    """Try the sandbox once, and log whether scripts run without it or are refused for its lack."""
    if why := bubblewrap.explain_unavailability():
        log.warning(
            "sandbox.unavailable",
            reason=why,
            scripts="refused" if explain_unavailability() else "not isolated",
        )


async def run_script(code: str, limits: Limits = LIMITS) -> JobResult:
    """Run a script to its end or its limits; `result` is the value of its last expression, as written.

    Raises: bubblewrap.Unavailable where there is no interpreter, or no isolation and the operator requires
    it.
    """
    if why := await asyncio.to_thread(explain_unavailability):
        raise bubblewrap.Unavailable(why)
    if await asyncio.to_thread(bubblewrap.explain_unavailability):
        return await run_bare(code, limits)
    return await run_apart(code, limits)


async def run_bare(code: str, limits: Limits = LIMITS) -> JobResult:
    """Run a script by its interpreter, without a sandbox.

    Raises: bubblewrap.Unavailable where there is no interpreter.
    """
    program, began = _find_program(), read_monotonic_clock()
    if program is None:
        raise bubblewrap.Unavailable(explain_unavailability())
    source = os.memfd_create("script")
    try:
        with os.fdopen(os.dup(source), "wb") as file:
            file.write(code.encode())
        os.lseek(source, 0, os.SEEK_SET)
        process = await spawn_process_group(
            str(program), *_build_limit_options(), f"/dev/fd/{source}",
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env={}, cwd="/", pass_fds=(source,),
        )  # fmt: skip
    finally:
        os.close(source)
    with suppress(ProcessLookupError, PermissionError):
        _apply_process_limits(process.pid, limits)
    followed = FollowedProcess(process, limits)
    heard = await followed.until_the_end()
    said, value = _split_output(bytes(heard[1].head))
    return JobResult(
        why=followed.why, status=process.returncode if followed.why == "ended" else None,
        stdout=bytes(heard[0].head), stderr=said, seconds=read_monotonic_clock() - began,
        cut=any(one.size > one.most for one in heard), result=value,
    )  # fmt: skip


async def run_apart(code: str, limits: Limits = LIMITS) -> JobResult:
    """Run a script in an operating-system sandbox around its interpreter.

    Raises: bubblewrap.Unavailable.
    """
    ended = await bubblewrap.run_sandbox_job(script_job(code, limits))
    said, value = _split_output(ended.stderr)
    return replace(ended, stderr=said, result=value)


def script_job(code: str, limits: Limits = LIMITS) -> Job:
    """Build the sandbox job of a script.

    Raises: bubblewrap.Unavailable where there is no interpreter.
    """
    program = _find_program()
    if program is None:
        raise bubblewrap.Unavailable(explain_unavailability())
    return Job(
        argv=(f"/packages/{program.name}", *_build_limit_options(), "/code/script.py"),
        files={"code/script.py": code.encode()}, limits=limits, programs=(str(program),),
    )  # fmt: skip


def _is_isolation_required() -> bool:
    return bool(settings.INTERLOCK_SCRIPT_ISOLATION == "required")


def _build_limit_options() -> tuple[str, ...]:
    return (
        "--max-feed-duration", str(SECONDS), "--max-memory", f"{MEGABYTES}MB",
        "--max-recursion-depth", str(DEPTH), "--max-suspensions", "100", "--max-total-sleep", "0",
        "--max-sleep", "0",
    )  # fmt: skip


def _apply_process_limits(pid: int, limits: Limits) -> None:
    """Set limits of the operating system in addition to those of the interpreter."""
    addresses = limits.address_bytes or limits.memory_bytes
    for name, bound in (
        (resource.RLIMIT_CPU, limits.cpu_seconds), (resource.RLIMIT_AS, addresses),
        (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        resource.prlimit(pid, name, (bound, bound))


def _split_output(said: bytes) -> tuple[bytes, bytes | None]:
    """Split the program's output into error text and the value of the last expression."""
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
def _find_program() -> Path | None:
    for place in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        if (place / "monty").is_file():
            return place / "monty"
    return None
