"""The tools on a run's files, called as a run calls them."""

from typing import Any
from uuid import UUID

import pytest

from orchestrator.core.tools.isolation import with_isolation
from orchestrator.knowledge.actions.workspace import RunFiles, hand_in
from orchestrator.knowledge.queries.workspace import (
    find_file_content,
    get_newest_revision,
    list_workspace_revisions,
)
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.registry import shipped_tools
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doors.gateways.effects import SALT, ScriptedPermit, Told, call_tool, read
from tests.factories.world import LOOP, make_world
from tests.proves import proves
from traces.core.canonical import canonical_outside

FILES = {
    "src/app.py": b"def add(a, b):\n    return a - b\n",
    "README.md": b"An adder.\nSee src.\n",
    "x.bin": b"\0\1",
}
FIX = """--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
GONE = "--- a/README.md\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-An adder.\n-See src.\n"


class Desk:
    """A run with files, and a gateway that calls tools for it."""

    def __init__(self, house: House) -> None:
        self.world = make_world(house)
        self.tenant, self.run = self.world.id, self.world.submit("tool-loop", "Mend the adder.")
        self.gateway = ToolGateway()
        with tenant_transaction(self.tenant):
            self.base = hand_in(self.tenant, self.run, FILES).digest

    def call(
        self, name: str, *, key: str = "k", run: UUID | None = None, isolated: bool = False, **arguments: Any
    ) -> Told:
        """One call, waited for."""
        body, spec, at = canonical_outside(arguments), shipped_tools()[name].spec, run or self.run
        spec = with_isolation(spec) if isolated else spec
        return read(
            self.gateway.start(
                LOOP, call_tool(name, body, key=key, timeout_ms=spec.timeout_ms), body, spec, SALT,
                ScriptedPermit(run=at), tenant=self.tenant, files=RunFiles(self.tenant, at),
            ).result(90)
        )  # fmt: skip

    def told(self, name: str, **arguments: Any) -> Any:
        """The result of a call that is answered."""
        told = self.call(name, **arguments)
        return told.document(told.event.observation)

    def refused(self, name: str, **arguments: Any) -> str:
        """Why a call was refused."""
        told = self.call(name, **arguments)
        assert (told.event.kind, told.event.error) == ("tool_failed", "refused")
        return told.text(told.event.detail)


@pytest.fixture
def desk(house: House) -> Desk:
    """A desk."""
    return Desk(house)


@proves("R-TOOL-19", part="workspace tools")
def test_files_are_listed_read_and_searched(desk: Desk) -> None:
    listed = desk.told("files.list", folder="src")
    assert ([one["path"] for one in listed["listed"]], listed["digest"]) == (["src/app.py"], desk.base)
    text = desk.told("files.read", path="README.md", first=2, lines=5)
    assert (text["text"], text["of"], text["state"]) == ("See src.", 2, desk.base)
    hits = desk.told("files.search", text="ADD")
    assert [(one["path"], one["line"]) for one in hits["hits"]] == [("README.md", 1), ("src/app.py", 1)]
    state = desk.told("files.state")
    assert (state["digest"], state["files"], state["revision"]) == (desk.base, 3, 0)


@proves("R-TOOL-19", part="path jail, by the tools")
@pytest.mark.parametrize(
    "path", ["../etc/passwd", "/etc/passwd", "src\\app.py", "SRC/app.py", "nothing", "x.bin"]
)
def test_what_is_no_text_of_the_run_is_not_read(desk: Desk, path: str) -> None:
    assert desk.refused("files.read", path=path)


@proves("R-TOOL-19", part="propose and apply")
def test_a_diff_is_tried_first_and_applied_once(desk: Desk) -> None:
    proposed = desk.told("files.propose_diff", diff=FIX, base=desk.base)
    with tenant_transaction(desk.tenant):
        assert get_newest_revision(desk.run).digest == desk.base
    first = desk.told("files.apply_diff", diff=FIX, base=desk.base)
    assert (first["digest"], first["revision"], first["before"]) == (proposed["digest"], 1, 0)
    assert first["changes"] == [{"path": "src/app.py", "kind": "changed", "added": 1, "removed": 1}]
    # The same call again, as after a crash: the same answer, and nothing is done.
    assert desk.told("files.apply_diff", diff=FIX, base=desk.base) == first
    assert desk.told("files.state")["digest"] == first["digest"]
    with tenant_transaction(desk.tenant):
        assert (
            find_file_content(get_newest_revision(desk.run), "src/app.py")
            == b"def add(a, b):\n    return a + b\n"
        )
        assert len(list_workspace_revisions(desk.run)) == 2


@proves("R-TOOL-19", part="conflicts")
def test_a_diff_for_another_state_or_another_text_changes_nothing(desk: Desk) -> None:
    assert "read it again" in desk.refused("files.apply_diff", diff=FIX, base="0" * 64)
    assert "is not as the diff has it" in desk.refused(
        "files.apply_diff", diff=FIX.replace("-    return a - b", "-    return a * b"), base=desk.base
    )
    escaping = FIX.replace("src/app.py", "../app.py")
    assert "no name for a file" in desk.refused("files.apply_diff", diff=escaping, base=desk.base)
    assert "files.apply_broad" in desk.refused("files.apply_diff", diff=GONE, base=desk.base)
    with tenant_transaction(desk.tenant):
        assert get_newest_revision(desk.run).number == 0


@proves("R-TOOL-2", part="broad changes of files are gated")
def test_what_deletes_is_a_tool_of_its_own_that_is_gated(desk: Desk) -> None:
    narrow, broad = (shipped_tools()[f"files.apply_{name}"].spec for name in ("diff", "broad"))
    assert (narrow.needs_gate, broad.needs_gate) == (False, True)
    made = desk.told("files.apply_broad", diff=GONE, base=desk.base)
    assert desk.told("files.list", folder="")["files"] == 2
    back = desk.told("files.restore", key="k2", revision=made["before"], base=made["digest"])
    assert (back["digest"], back["revision"]) == (desk.base, 2)


@proves("R-TOOL-19", part="files of one run")
def test_a_run_sees_its_own_files_alone(desk: Desk) -> None:
    told = desk.call("files.list", run=UUID(int=8), folder="")
    assert told.document(told.event.observation)["listed"] == []


@proves("R-TOOL-5", part="files apart")
@pytest.mark.parametrize(("name", "diff"), [("files.apply_diff", FIX), ("files.apply_broad", GONE)])
def test_a_change_apart_is_told_and_not_made(desk: Desk, name: str, diff: str) -> None:
    told = desk.told(name, isolated=True, diff=diff, base=desk.base)
    assert told["isolated"] is True
    assert told["digest"] != desk.base
    assert desk.told("files.state")["digest"] == desk.base
    assert "read it again" in desk.refused(name, isolated=True, diff=diff, base="0" * 64)
    back = desk.told("files.restore", isolated=True, revision=0, base=desk.base)
    assert (back["isolated"], back["digest"]) == (True, desk.base)
    with tenant_transaction(desk.tenant):
        assert len(list_workspace_revisions(desk.run)) == 1
