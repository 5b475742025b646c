"""The tools that run code, called as a run calls them."""

import os

import pytest

from orchestrator.core.tools.isolation import with_isolation
from orchestrator.knowledge.actions.workspace import change_files
from orchestrator.knowledge.queries.workspace import get_newest_revision
from orchestrator.tools.gateways.availability import list_missing_dependencies, list_unavailable_tools
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.gateways.sandbox import bubblewrap
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.proves import proves
from tests.shell.orchestrator.test_file_tools import Desk
from tests.shell.orchestrator.test_file_tools import desk as desk

needs_sandbox = pytest.mark.skipif(
    bool(bubblewrap.explain_unavailability()) and not os.environ.get("INTERLOCK_SANDBOX_REQUIRED"),
    reason=bubblewrap.explain_unavailability() or "there is one",
)
CASES = """
import unittest
from src.app import add
class Adds(unittest.TestCase):
    def test_adds(self): self.assertEqual(add(2, 2), 4)
    def test_breaks(self): raise KeyError("gone")
    @unittest.skip("later")
    def test_later(self): pass
    def test_is(self): self.assertTrue(add)
"""
ONE_SKIPPED = """
import unittest
class T(unittest.TestCase):
    def test_ok(self): pass
    @unittest.skip("hard")
    def test_all_that_matters(self): self.fail()
"""
PLAIN = """
from src.app import add
def test_adds():
    assert add(2, 2) == 4
def test_ok(): pass
"""


def put(desk: Desk, path: str, text: str) -> None:
    """Another file of the run."""
    with tenant_transaction(desk.tenant):
        base = get_newest_revision(desk.run).digest
        change_files(desk.tenant, desk.run, key=path, base=base, changes={path: text.encode()}, summary="")


@proves("R-TOOL-19", part="script tool")
def test_a_script_is_run_and_told(desk: Desk) -> None:
    told = desk.told("sandbox.script", code="print(2 + 2)\nsum([1, 2])")
    assert (told["fine"], told["stdout"], told["value"]) == (True, "4\n", "3")
    failed = desk.told("sandbox.script", code="1 / 0")
    assert (failed["fine"], failed["end"], failed["status"]) == (False, "ended", 1)
    assert "ZeroDivisionError" in failed["stderr"]


@needs_sandbox
@proves("R-TOOL-19", part="python tool")
def test_a_program_works_on_a_copy_of_the_files(desk: Desk) -> None:
    code = (
        "from pathlib import Path\nhere = Path('src/app.py')\nprint(here.read_text())\nhere.write_text('x')"
    )
    told = desk.told("sandbox.python", code=code)
    assert (told["fine"], told["state"]) == (True, desk.base)
    assert "def add" in told["stdout"]
    assert desk.told("files.state")["digest"] == desk.base


@needs_sandbox
@proves("R-TOOL-19", part="test runner")
@proves("R-LOOP-21", part="what failed, and how")
@pytest.mark.parametrize("runner", ["unittest", "pytest"])
def test_a_test_suite_is_run_and_what_failed_is_told(desk: Desk, runner: str) -> None:
    put(desk, "checks/test_app.py", CASES if runner == "unittest" else PLAIN)
    told = desk.told("sandbox.tests", folder="checks", runner=runner)
    (wrong,) = [one for one in told["failures"] if one["kind"] == "failed"]
    assert (wrong["actual"], wrong["expected"]) == ("0", "4")
    assert "test_adds" in wrong["name"]
    assert "test_app.py:" in wrong["location"]
    assert "add(2, 2)" in wrong["trace"]
    expected = (1, 1, 1, 1) if runner == "unittest" else (1, 1, 0, 0)
    assert tuple(told[name] for name in ("passed", "failed", "errors", "skipped")) == expected
    assert (told["end"], told["whole"], told["runner"]) == ("ended", False, runner)


@needs_sandbox
@pytest.mark.parametrize(
    ("test", "end", "whole"),
    [
        ("import unittest\nclass T(unittest.TestCase):\n  def test_ok(self): pass", "ended", True),
        (ONE_SKIPPED, "ended", False),
        ("import os\nos._exit(0)", "crashed", False),
        ("this is no Python", "ended", False),
        ("", "ended", False),
        ("open('/tmp/result.json', 'w').write('{}')\nimport os\nos._exit(0)", "crashed", False),
    ],
)
def test_only_tests_that_ran_and_passed_are_whole(desk: Desk, test: str, end: str, whole: bool) -> None:
    put(desk, "checks/test_x.py", test)
    told = desk.told("sandbox.tests", folder="checks", runner="unittest")
    assert (told["end"], told["whole"]) == (end, whole)


@needs_sandbox
def test_a_folder_that_is_none_is_refused(desk: Desk) -> None:
    assert "there is no folder" in desk.refused("sandbox.tests", folder="nowhere")


@proves("R-LOOP-21", part="not available, with its reason")
def test_without_a_sandbox_the_tools_say_why(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, house: House
) -> None:
    for name in ("sandbox.python", "sandbox.tests"):
        monkeypatch.setattr(shipped_tools()[name], "lacks", lambda: "bubblewrap is not installed")
    assert "bubblewrap is not installed" in desk.refused("sandbox.python", code="print(1)")
    assert list_missing_dependencies() == dict.fromkeys(
        ("sandbox.python", "sandbox.tests"), "bubblewrap is not installed"
    )


@proves("R-LOOP-21", part="what a run's machine lacks")
def test_a_run_hears_of_what_it_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "explain_unavailability", lambda: "no")
    monkeypatch.setattr(shipped_tools()["sandbox.tests"], "lacks", lambda: "none")
    pinned = {name: declared.spec for name, declared in shipped_tools().items()}
    assert list_unavailable_tools(pinned, ("files.*", "calculator.*")) == {}
    assert list_unavailable_tools(pinned, ("sandbox.tests", "sandbox.script")) == {"sandbox.tests": "none"}
    inside = {**pinned, "sandbox.script": with_isolation(pinned["sandbox.script"])}
    assert list_unavailable_tools(inside, ("sandbox.script",)) == {"sandbox.script": "no"}


@needs_sandbox
@proves("R-TOOL-5", part="a script in a sandbox around it")
def test_a_script_apart_is_run_in_a_sandbox_and_marked(desk: Desk) -> None:
    told = desk.told("sandbox.script", isolated=True, code="print(1)\n2 + 2")
    assert (told["isolated"], told["fine"], told["stdout"], told["value"]) == (True, True, "1\n", "4")
    failed = desk.told("sandbox.script", isolated=True, code="open('/etc/passwd')")
    assert "PermissionError" in failed["stderr"]
