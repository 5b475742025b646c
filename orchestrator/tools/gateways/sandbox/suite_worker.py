"""Runs a folder of tests inside the sandbox and writes their results to a file.

The module is copied into the sandbox as source and imports no code of ours. Its arguments: the runner
(`pytest` or `unittest`), the folder, and the output path. Tests run in this very process and can forge
their results, so nothing outside relies on the report beyond what a verifier makes of it.
"""

import importlib
import json
import re
import sys
import traceback
import unittest

MOST_FAILURES = 50
LONGEST = 4_000
_COMPARED = re.compile(
    r"^(?:AssertionError: )?(?:assert )?(.{1,300}?) (?:==|!=) (.{1,300}?)(?:\n|$)", re.DOTALL
)


class Tally:
    """The results of the tests so far."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("passed", "failed", "errors", "skipped"), 0)
        self.failures = []  # type: ignore[var-annotated]

    def fault(self, kind: str, name: str, message: str, trace: str, location: str) -> None:
        """Record one test that did not pass, or could not be run."""
        self.counts[kind] += 1
        if len(self.failures) >= MOST_FAILURES:
            return
        found = _COMPARED.match(message.strip())
        self.failures.append(
            {
                "name": name[:300], "kind": "failed" if kind == "failed" else "error",
                "message": message[-LONGEST:], "trace": trace[-LONGEST:], "location": location[:300],
                "actual": found.group(1)[:300] if found else "",
                "expected": found.group(2)[:300] if found else "",
            }
        )  # fmt: skip


class Results(unittest.TestResult):
    """A unittest result that records to the tally."""

    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self.tally = tally

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - its name there
        """Count a test that passed."""
        super().addSuccess(test)
        self.tally.counts["passed"] += 1

    def addFailure(self, test, err) -> None:  # type: ignore[no-untyped-def]  # noqa: N802
        """Record a test that failed."""
        self._fault("failed", test, err)

    def addError(self, test, err) -> None:  # type: ignore[no-untyped-def]  # noqa: N802
        """Record a test that could not be completed."""
        self._fault("errors", test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - its name there
        """Count a test that was skipped."""
        super().addSkip(test, reason)
        self.tally.counts["skipped"] += 1

    def addExpectedFailure(self, test, err) -> None:  # type: ignore[no-untyped-def]  # noqa: N802
        """Count a test that failed as expected, as passed."""
        self.tally.counts["passed"] += 1

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - its name there
        """Record a test that passed although it was expected to fail."""
        self.tally.fault("failed", test.id(), "it passed, and says that it fails", "", "")

    def addSubTest(self, test, subtest, err) -> None:  # type: ignore[no-untyped-def]  # noqa: N802
        """Record a failed subtest; a subtest that passed is not counted."""
        if err is not None:
            self._fault("failed" if issubclass(err[0], AssertionError) else "errors", subtest, err)

    def _fault(self, kind, test, err) -> None:  # type: ignore[no-untyped-def]
        frames = [frame for frame in traceback.extract_tb(err[2]) if frame.filename.startswith("/work/")]
        location = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        trace = "".join(traceback.format_exception(*err))
        self.tally.fault(kind, test.id(), str(err[1]) or err[0].__name__, trace, location)


class Plugin:
    """A pytest plugin that records results to the tally."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def pytest_runtest_logreport(self, report) -> None:  # type: ignore[no-untyped-def]
        """Record the set-up, call or tear-down of a test."""
        if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
            self.tally.counts["skipped"] += 1
        elif report.outcome == "failed":
            self._fault("failed" if report.when == "call" else "errors", report)
        elif report.when == "call":
            self.tally.counts["passed"] += 1

    def pytest_collectreport(self, report) -> None:  # type: ignore[no-untyped-def]
        """Record a test file that could not be collected."""
        if report.outcome == "failed":
            self._fault("errors", report)

    def _fault(self, kind, report) -> None:  # type: ignore[no-untyped-def]
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message if crash else str(report.longrepr)
        location = f"{crash.path}:{crash.lineno}" if crash else ""
        self.tally.fault(kind, report.nodeid, message, str(report.longrepr), location)


def main(runner: str, folder: str, place: str) -> None:
    """Run all tests and write their results."""
    tally = Tally()
    sys.path.insert(0, folder)
    if runner == "pytest":
        pytest = importlib.import_module("pytest")
        pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", folder, folder], plugins=[Plugin(tally)])
    else:
        found = unittest.TestLoader().discover(folder, pattern="test*.py", top_level_dir=folder)
        found.run(Results(tally))
    with open(place, "w") as file:  # noqa: PTH123
        json.dump({"counts": tally.counts, "failures": tally.failures}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
