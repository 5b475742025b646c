"""Whole Python in a sandbox of the operating system (R-LOOP-21, R-TOOL-19).

No network, no files but what is given, no other processes, nothing that outlives it: namespaces and a filter
of system calls make what is outside unreachable, limits bound what is inside, and a watch from outside ends
all of it together. Where the machine cannot, `explain_unavailability` says why and nothing is run.
"""

import asyncio
import base64
import io
import math
import os
import platform
import shutil
import subprocess
import tarfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock
from orchestrator.outbound.gateways.subprocess_groups import (
    kill_group_and_wait,
    run_to_completion,
    spawn_process_group,
)
from orchestrator.tools.gateways.sandbox import bwrap_arguments, resource_monitor, seccomp_filter
from orchestrator.tools.gateways.sandbox.limits import Job, JobResult, Why
from orchestrator.tools.gateways.sandbox.process_io import FollowedProcess, StreamOutput

INSIDE = Path(__file__).with_name("init_process.py").read_text(encoding="utf-8")
WHERE = "/usr/local/bin:/usr/bin:/bin"
LARGEST_REPORT = 8 * 1024 * 1024
# The monitor, the first process, and the one that lays out the files; of a user of its own only the last is.
OWN_PROCESSES = 3
PROBE_SECONDS = 20.0
# What a sandbox may take beyond its time before it ends itself, where nobody outside does.
OVERTIME_SECONDS = 5.0


@cache
def explain_unavailability() -> str:
    """Why there is no sandbox of the operating system here; empty where there is one. Tried once in a
    process."""
    bwrap = _find_bwrap()
    if bwrap is None:
        return "bubblewrap is not installed on this machine"
    if seccomp_filter.build_seccomp_filter(platform.machine()) is None:
        return f"the system calls of {platform.machine()} are not known here"
    try:
        return _probe_sandbox(bwrap)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be used here: {type(error).__name__}"


async def run_sandbox_job(job: Job) -> JobResult:
    """Run a job to its end or its limits. Raises Unavailable; whatever the job does is an outcome."""
    reason = await asyncio.to_thread(explain_unavailability)
    if reason:
        raise Unavailable(reason)
    began = read_monotonic_clock()
    report, reporting = os.pipe()
    seccomp = _open_seccomp_filter()
    try:
        process = await spawn_process_group(
            *_build_command(_find_bwrap() or "bwrap", job, seccomp, reporting),
            stdin=PIPE, stdout=PIPE, stderr=PIPE, env={}, cwd="/", pass_fds=(seccomp, reporting),
        )  # fmt: skip
    except BaseException:
        os.close(report)
        raise
    finally:
        os.close(reporting)
        os.close(seccomp)
    resource_monitor.first_to_go(process.pid)
    try:
        return await _supervise_process(process, job, report, began)
    finally:
        if process.returncode is None:
            await run_to_completion(kill_group_and_wait(process))


class Unavailable(Exception):
    """There is no sandbox here, and code is run in none but a sandbox."""


async def _supervise_process(process: Process, job: Job, report: int, began: float) -> JobResult:
    """Feed it, hear it and watch it until it ends or is ended."""
    own = job.limits.processes + OWN_PROCESSES
    followed, told = (
        FollowedProcess(process, replace(job.limits, processes=own)),
        StreamOutput(LARGEST_REPORT),
    )
    reader, source = asyncio.StreamReader(), os.fdopen(report, "rb", buffering=0)
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), source
        )
    except BaseException:
        source.close()
        raise
    try:
        heard = await followed.until_the_end(
            followed.feed(_pack_files(job.files)), followed.hear(reader, told)
        )
    finally:
        transport.close()
    return _build_outcome(
        _parse_report(bytes(told.head)), followed.why, heard, read_monotonic_clock() - began
    )


def _build_outcome(
    told: dict[str, Any], why: Why, heard: tuple[StreamOutput, StreamOutput], seconds: float
) -> JobResult:
    if why == "ended":
        why = told["why"] if told else "crashed"
    found = told.get("result")
    return JobResult(
        why=why, status=told.get("status") if why == "ended" else None,
        stdout=bytes(heard[0].head), stderr=bytes(heard[1].head), seconds=seconds,
        cut=any(one.size > one.most for one in heard),
        result=base64.b64decode(found) if isinstance(found, str) else None,
    )  # fmt: skip


def _parse_report(report: bytes) -> dict[str, Any]:
    """The report of the first program; empty where it never came to it. Only that program can write it."""
    try:
        told = orjson.loads(report)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) and told.get("why") in ("ended", "files") else {}


def _build_command(bwrap: str, job: Job, seccomp: int, reporting: int) -> list[str]:
    limits, uid = job.limits, bwrap_arguments.fresh_uid()
    python = bwrap_arguments.resolve_interpreter_path()
    asked = {
        "uid": uid,
        "argv": [python if word == "python" and at == 0 else word for at, word in enumerate(job.argv)],
        "environment": {**bwrap_arguments.ENVIRONMENT, **job.environment},
        "limits": {
            "RLIMIT_CPU": limits.cpu_seconds, "RLIMIT_AS": limits.address_bytes or limits.memory_bytes,
            "RLIMIT_FSIZE": limits.file_bytes, "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_NPROC": limits.processes + (1 if uid else OWN_PROCESSES), "RLIMIT_CORE": 0,
            "RLIMIT_MSGQUEUE": 0, "RLIMIT_MEMLOCK": 0,
        },
        "files": limits.files, "report": reporting, "result": job.result,
        "seconds": math.ceil(limits.seconds + OVERTIME_SECONDS),
    }  # fmt: skip
    program = [python, "-I", "-S", "-c", INSIDE, orjson.dumps(asked).decode()]
    return bwrap_arguments.build_bwrap_command(bwrap, job, uid, seccomp, program)


def _pack_files(files: Mapping[str, bytes]) -> bytes:
    """The files as a tar. Their names are paths from the root, such as `work/a.py`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _open_seccomp_filter() -> int:
    """A descriptor that the filter can be read from."""
    found = os.memfd_create("filter")
    os.write(found, seccomp_filter.build_seccomp_filter(platform.machine()) or b"")
    os.lseek(found, 0, os.SEEK_SET)
    return found


def _find_bwrap() -> str | None:
    return shutil.which("bwrap", path=WHERE)


def _probe_sandbox(bwrap: str) -> str:
    """Make one sandbox and see that it ends well."""
    seccomp = _open_seccomp_filter()
    try:
        job = Job(argv=("python", "-I", "-S", "-c", ""))
        found = subprocess.run(
            _build_command(bwrap, job, seccomp, 1),
            input=_pack_files({}),
            capture_output=True,
            env={},
            cwd="/",
            pass_fds=(seccomp,),
            timeout=PROBE_SECONDS,
            check=False,
        )
    finally:
        os.close(seccomp)
    told = _parse_report(found.stdout)
    if found.returncode == 0 and told.get("status") == 0:
        return ""
    said = found.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    return (
        f"bubblewrap cannot be used here: {said[-1][:200] if said else f'it ended with {found.returncode}'}"
    )
