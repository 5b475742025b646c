"""The tests of the run's files pass as the files are now (R-LOOP-21).

What `sandbox.tests` said last of `folder` (empty: of all files) was whole, every test run and none failed,
and no change of the files was committed after it: whoever works may not choose an easier folder. The suite
runs as a call of the run, with its budget, deadline and isolation; the criterion reads what came of it and
says what is missing.
"""

from collections.abc import Mapping

from orchestrator.core.state import Fact
from orchestrator.core.step import View
from orchestrator.core.value import Small

NAME = "tests_pass"
PARAMETERS = ("folder",)
RUNNER = "sandbox.tests"
CHANGES = ("files.apply_diff", "files.apply_broad", "files.restore")


def holds(view: View, text: str, parameters: Mapping[str, Small]) -> bool:
    """Whether they do."""
    return not faults(view, text, parameters)


def faults(view: View, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """What failed, or what was not run."""
    folder = parameters.get("folder") or ""
    facts = [fact for _, fact in view.state.facts_in_order()]
    ran = [fact for fact in facts if fact.tool == RUNNER and fact.values.get("folder") == folder]
    where = f" in {str(folder)[:100]}" if folder else ""
    if not ran:
        return [f"no tests were run{where}; {RUNNER} runs them"]
    newest = max(ran, key=lambda fact: fact.record)
    if any(_changed(fact) and fact.record >= newest.record for fact in facts):
        return [f"the files were changed after the tests were run{where}; run {RUNNER} again"]
    if newest.values.get("whole") is True:
        return []
    failed, errors, first = (newest.values.get(name) for name in ("failed", "errors", "first"))
    begins = f"; the first is {str(first)[:150]}" if first else ""
    return [f"{failed} tests failed and {errors} came to no end{where}{begins}"]


def _changed(fact: Fact) -> bool:
    """Whether the files were changed by it; what was done to a copy is thrown away."""
    return fact.tool in CHANGES and fact.values.get("isolated") is not True
