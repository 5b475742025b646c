"""The tests of the run's files pass for the current state of the files (R-LOOP-21).

The last result of `sandbox.tests` for `folder` (empty: for all files) was complete: every test ran, none
failed, and none was skipped, or at most `skipped` of them. The files have not changed since: no change was
committed, made without verification, or left in doubt afterwards, and every later read of the files saw the
tested state. The model may not choose an easier folder. The suite runs as a call of the run, with its budget,
deadline and isolation; the criterion reads the result and says what is missing.
"""

from collections.abc import Mapping

from orchestrator.core.common.frozen_model import Small
from orchestrator.core.domain.run_state import Fact
from orchestrator.core.workflow.node_protocol import NodeContext

NAME = "tests_pass"
PARAMETERS = ("folder", "skipped")
OF_FACTS = True
RUNNER = "sandbox.tests"
CHANGES = ("files.apply_diff", "files.apply_broad", "files.restore")
SEES_FILES = ("files.", "sandbox.")


def holds(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> bool:
    """Return whether the tests passed."""
    return not faults(view, text, parameters)


def faults(view: NodeContext, text: str, parameters: Mapping[str, Small]) -> list[str]:
    """Return what failed or was not run, as a sentence."""
    folder = parameters.get("folder") or ""
    facts = [fact for _, fact in view.state.facts_in_order()]
    ran = [fact for fact in facts if fact.tool == RUNNER and fact.values.get("folder") == folder]
    where = f" in {str(folder)[:100]}" if folder else ""
    if not ran:
        return [f"no tests were run{where}; {RUNNER} runs them"]
    newest = max(ran, key=lambda fact: fact.record)
    changed = any(_is_file_change(fact) and fact.record >= newest.record for fact in facts)
    if changed or _other_since(view, newest):
        return [f"the files were changed after the tests were run{where}; run {RUNNER} again"]
    allowed = parameters.get("skipped", 0)
    if newest.values.get("whole") is True or _enough(newest, allowed):
        return []
    failed, errors, first = (newest.values.get(name) for name in ("failed", "errors", "first"))
    if skipped := newest.values.get("skipped"):
        return [f"{failed} tests failed, {errors} came to no end and {skipped} were skipped{where}"]
    begins = f"; the first is {str(first)[:150]}" if first else ""
    return [f"{failed} tests failed and {errors} came to no end{where}{begins}"]


def _is_file_change(fact: Fact) -> bool:
    """Return whether the fact records a change of the files; a change to an isolated copy is discarded."""
    return fact.tool in CHANGES and fact.values.get("isolated") is not True


def _other_since(view: NodeContext, suite: Fact) -> bool:
    """Return whether the files may differ from the tested ones although no change was committed.

    They may if a change is in doubt or failed its verification, or if a later read saw another state.
    """
    facts = view.state.facts.values()
    apart = {fact.call for fact in facts if fact.values.get("isolated") is True}
    later = (
        deed.tool in CHANGES and call not in apart and _number(call) > _number(suite.call)
        for call, deed in view.state.deeds.items()
    )  # fmt: skip
    tested = suite.values.get("state")
    seen = (
        fact.tool.startswith(SEES_FILES) and "state" in fact.values and fact.call not in apart
        and fact.record > suite.record and fact.values["state"] != tested
        for fact in facts
    )  # fmt: skip
    return any(later) or any(seen)


def _number(call: str) -> int:
    """Return the number of a call; calls are numbered in the order of their requests."""
    return int(call[1:])


def _enough(suite: Fact, allowed: Small) -> bool:
    """Return whether the suite finished, a test passed, none failed, and at most `allowed` were skipped."""
    passed, failed, errors, skipped = (
        suite.values.get(name) for name in ("passed", "failed", "errors", "skipped")
    )
    if suite.values.get("end") != "ended" or (failed, errors) != (0, 0):
        return False
    if not isinstance(passed, int) or not isinstance(skipped, int) or not isinstance(allowed, int):
        return False
    return passed > 0 and skipped <= allowed
