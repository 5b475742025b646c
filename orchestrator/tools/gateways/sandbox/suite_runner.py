"""Runs a test suite in the sandbox and returns its report (R-LOOP-21)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.tools.gateways.sandbox import bubblewrap, bwrap_arguments
from orchestrator.tools.gateways.sandbox.limits import Job, JobResult, Limits

SUITE = Path(__file__).with_name("suite_worker.py").read_text(encoding="utf-8")
# The packages that pytest consists of; missing ones are left out.
PYTEST: Final = (
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
)
RESULT: Final = "/tmp/result.json"  # noqa: S108 - in the sandbox
LIMITS: Final = Limits(
    seconds=60.0, cpu_seconds=60, memory_bytes=1024 * 1024 * 1024, processes=24, output_bytes=256 * 1024
)

Runner = Literal["pytest", "unittest"]
Count = Field(ge=0, le=1_000_000)


class Failure(BaseModel):
    """A test that did not pass: the compared values, the location, and the end of its trace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(max_length=300)
    kind: Literal["failed", "error"]
    message: str = Field(max_length=4_000)
    expected: str = Field(max_length=300)
    actual: str = Field(max_length=300)
    location: str = Field(max_length=300)
    trace: str = Field(max_length=4_000)


class Counts(BaseModel):
    """The number of tests by result."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    passed: int = Count
    failed: int = Count
    errors: int = Count
    skipped: int = Count


class Report(BaseModel):
    """The report that the runner wrote."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    counts: Counts
    failures: tuple[Failure, ...] = Field(max_length=50)


def has_pytest() -> bool:
    """Return whether pytest is installed here; without pytest only unittest suites can be run."""
    return bwrap_arguments.can_import("pytest")


async def run_suite(
    files: Mapping[str, bytes], folder: str, runner: Runner, limits: Limits = LIMITS
) -> tuple[JobResult, Report | None]:
    """Run the tests in a folder of these files.

    The report is None where the runner did not finish, or wrote no valid report.

    Raises: bubblewrap.Unavailable.
    """
    place = f"/work/{folder}".rstrip("/")
    laid = {f"work/{path}": body for path, body in files.items()}
    job = Job(
        argv=("python", "/code/suite.py", runner, place, RESULT),
        files={**laid, "code/suite.py": SUITE.encode()},
        limits=limits,
        # Other packages of the machine's Python must not change the result of a suite.
        environment={"PYTHONPATH": "/work:/work/src:/packages", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        packages=tuple(filter(bwrap_arguments.can_import, PYTEST)) if runner == "pytest" else (),
        result=RESULT,
    )
    ended = await bubblewrap.run_sandbox_job(job)
    if ended.why != "ended" or ended.result is None:
        return ended, None
    try:
        return ended, Report.model_validate_json(ended.result)
    except ValidationError:
        return ended, None
