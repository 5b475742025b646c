"""sandbox.*: code that a model wrote, run where it can reach nothing (R-TOOL-19, R-LOOP-21).

`sandbox.python` and `sandbox.tests` are whole Python in a sandbox of the operating system, with a copy of the
run's files; where the machine has none they are not available. `sandbox.script` is a small subset of Python,
in such a sandbox too where there is one; it is young, so it stands one risk class higher. What code prints is
data, whoever wrote it.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.core.domain.tool_spec import Reversibility, Risk, Verifier
from orchestrator.core.files.workspace_paths import is_within_folder, safe_path
from orchestrator.knowledge.queries.workspace import get_newest_revision, load_file_contents
from orchestrator.tools.gateways.egress.service_client import CallFailed, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, tool
from orchestrator.tools.gateways.sandbox import bubblewrap, monty_scripts, suite_runner
from orchestrator.tools.gateways.sandbox.limits import Job, JobResult, Limits
from orchestrator.tools.gateways.sandbox.suite_runner import Failure, Report
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.gateways.tool_errors import build_tool_refusal, in_words

LONGEST_CODE = 50_000
TAIL = 4_000
MARGIN = 2.0

Code = Annotated[str, Field(min_length=1, max_length=LONGEST_CODE, description="Python source")]
End = Literal["ended", "timeout", "memory", "output", "processes", "files", "crashed"]


class Bounds(ToolResult):
    """The limits that it ran under."""

    seconds: float
    memory_bytes: int
    processes: int
    output_bytes: int


class Ran(ToolResult):
    """`end`: by itself, or the limit at which it was ended; `status` is its exit status then None.

    `value` is the value of the last expression of a script, as it is written. `cut`: it said more than this.
    """

    end: End
    status: int | None
    fine: bool
    stdout: str
    stderr: str
    cut: bool
    value: str | None
    limits: Bounds


class RanOnFiles(Ran):
    """`state` is the digest of the files that it had a copy of."""

    state: str


class Tested(ToolResult):
    """`whole`: every test was run, none was skipped and none failed. `state` is the digest of the files that
    were tested."""

    end: End
    runner: Literal["pytest", "unittest"]
    folder: str
    state: str
    whole: bool
    passed: int
    failed: int
    errors: int
    skipped: int
    failures: list[Failure]
    stdout_tail: str
    stderr_tail: str
    limits: Bounds


@tool(
    name="sandbox.script",
    category="sandbox",
    capability="script",
    risk=Risk.LOCAL_WRITE,
    reversibility=Reversibility.PURE,
    honours_keys=True,
    lacks=monty_scripts.explain_unavailability,
    isolation="machine",
    timeout_ms=10_000,
    rate_per_minute=60,
    verifier=Verifier(name="schema"),
    effect_sentence="Run a small script. It changes nothing.",
    blast_radius="nothing",
    facts={"end": "/end", "status": "/status", "value": "/value"},
)
async def run_sandbox_script(context: ToolContext, code: Code) -> Ran:
    """Run a small script in a subset of Python: no files, no network, few modules (json, re, math, datetime).

    Returns what it prints and the value of its last expression. 5 seconds, 64 MB.
    """
    limits = _within_time(context, monty_scripts.LIMITS)
    apart = context.spec is not None and context.spec.isolated
    try:
        return _build_run_result(
            await (monty_scripts.run_apart if apart else monty_scripts.run_script)(code, limits), limits
        )
    except bubblewrap.Unavailable as why:
        raise _make_unavailable_failure(why) from why


@tool(
    name="sandbox.python", category="sandbox", capability="python", risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE, lacks=bubblewrap.explain_unavailability, isolation="machine",
    timeout_ms=30_000, rate_per_minute=30,
    verifier=Verifier(name="schema"), facts={"end": "/end", "status": "/status", "state": "/state"},
)  # fmt: skip
async def run_sandbox_python(context: ToolContext, code: Code) -> RanOnFiles:
    """Run a Python program on a copy of the run's files, in the folder that holds them.

    It has no network, sees nothing of the machine, and what it writes is gone when it ends. 20 seconds,
    512 MB.
    """
    state, files = await _load_files(context, "")
    limits = _within_time(context, Limits(seconds=20.0, cpu_seconds=20))
    laid = {f"work/{path}": body for path, body in files.items()}
    job = Job(argv=("python", "/code/main.py"), files={**laid, "code/main.py": code.encode()}, limits=limits)
    try:
        ended = await bubblewrap.run_sandbox_job(job)
    except bubblewrap.Unavailable as why:
        raise _make_unavailable_failure(why) from why
    return RanOnFiles(**_build_run_result(ended, limits, value=False).model_dump(), state=state)


@tool(
    name="sandbox.tests", category="sandbox", capability="tests", risk=Risk.READ_ONLY,
    reversibility=Reversibility.PURE, lacks=bubblewrap.explain_unavailability, isolation="machine",
    timeout_ms=75_000, rate_per_minute=20,
    max_result_chars=60_000,
    verifier=Verifier(name="asked", equal={"/result/folder": "/arguments/folder"}),
    facts={
        "whole": "/whole", "end": "/end", "passed": "/passed", "failed": "/failed", "errors": "/errors",
        "skipped": "/skipped", "state": "/state", "folder": "/folder",
        "first": "/failures/0/name",
    },
)  # fmt: skip
async def run_sandbox_tests(
    context: ToolContext,
    folder: Annotated[str, Field(max_length=240, description="where the tests are; empty for all files")],
    runner: Annotated[
        Literal["auto", "pytest", "unittest"], Field(description="auto: pytest where there is one")
    ] = "auto",
) -> Tested:
    """Run the tests of a folder of the run's files, on a copy of all of them, and tell how many passed and
    what failed: name, expected, actual, trace, place. 60 seconds, 1 GB."""
    state, files = await _load_files(context, folder)
    chosen: suite_runner.Runner = (
        "unittest" if runner == "unittest" or not suite_runner.has_pytest() else "pytest"
    )
    if runner == "pytest" and chosen != runner:
        raise build_tool_refusal("there is no pytest on this machine; take unittest")
    limits = _within_time(context, suite_runner.LIMITS)
    try:
        ended, report = await suite_runner.run_suite(files, folder, chosen, limits)
    except bubblewrap.Unavailable as why:
        raise _make_unavailable_failure(why) from why
    return _build_test_result(ended, report, folder=folder, runner=chosen, state=state, limits=limits)


def _build_test_result(
    ended: JobResult,
    report: Report | None,
    *,
    folder: str,
    runner: suite_runner.Runner,
    state: str,
    limits: Limits,
) -> Tested:
    counts = (
        report.counts if report is not None else suite_runner.Counts(passed=0, failed=0, errors=0, skipped=0)
    )
    end: End = ended.why if report is not None or ended.why != "ended" else "crashed"
    return Tested(
        end=end, runner=runner, folder=folder, state=state, passed=counts.passed, failed=counts.failed,
        errors=counts.errors, skipped=counts.skipped,
        whole=end == "ended" and counts.passed > 0 and counts.failed + counts.errors + counts.skipped == 0,
        failures=list(report.failures) if report is not None else [],
        stdout_tail=_decode_output(ended.stdout)[-TAIL:], stderr_tail=_decode_output(ended.stderr)[-TAIL:],
        limits=_build_bounds(limits),
    )  # fmt: skip


async def _load_files(context: ToolContext, folder: str) -> tuple[str, dict[str, bytes]]:
    """The digest of the run's files, and all of them. Raises CallFailed where the folder is none."""
    run = context.run
    if run is None:
        raise build_tool_refusal("this tool is called for a run")

    def look() -> tuple[str, dict[str, bytes]]:
        held = get_newest_revision(run)
        found = load_file_contents(run, held.tree.entries)
        if folder and not any(is_within_folder(path, safe_path(folder)) for path in found):
            raise build_tool_refusal(f"there is no folder {folder}")
        return held.digest, found

    return await in_house(context, lambda: in_words(look))


def _within_time(context: ToolContext, limits: Limits) -> Limits:
    """The limits, so that the call can still answer within its own time."""
    seconds = max(1.0, min(limits.seconds, context.seconds - MARGIN))
    return replace(limits, seconds=seconds)


def _build_run_result(ended: JobResult, limits: Limits, *, value: bool = True) -> Ran:
    return Ran(
        end=ended.why, status=ended.status, fine=ended.fine, stdout=_decode_output(ended.stdout),
        stderr=_decode_output(ended.stderr), cut=ended.cut,
        value=_decode_output(ended.result)[:TAIL] if value and ended.result is not None else None,
        limits=_build_bounds(limits),
    )  # fmt: skip


def _build_bounds(limits: Limits) -> Bounds:
    return Bounds(
        seconds=limits.seconds, memory_bytes=limits.memory_bytes, processes=limits.processes,
        output_bytes=limits.output_bytes,
    )  # fmt: skip


def _decode_output(said: bytes) -> str:
    return said.decode("utf-8", "backslashreplace")


def _make_unavailable_failure(why: bubblewrap.Unavailable) -> CallFailed:
    return CallFailed("refused", sent=False, detail=f"there is no sandbox here: {why}".encode())
