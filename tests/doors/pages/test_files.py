"""The tab of a run's files: what is there, what was changed, and downloads that are never shown."""

from html import unescape
from uuid import UUID

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from orchestrator.knowledge.actions.workspace import change_files, hand_in
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.gateways.sandbox import bubblewrap
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves

EVIL = "<script>alert(1)</script>\n"


@pytest.fixture
def auditor(world: World) -> Client:
    """The auditor's browser."""
    return at(world.people.auditor)


@pytest.fixture
def run(world: World) -> UUID:
    """A run whose files were changed once."""
    found = world.submit("tool-loop", "Mend the adder.")
    with tenant_transaction(world.id):
        base = hand_in(world.id, found, {"src/a b.py": b"one\n", "gone.txt": b"x\n", "x.bin": b"\0\1"}).digest
        changes = {"src/a b.py": EVIL.encode(), "gone.txt": None, "new.txt": b"2\n"}
        change_files(world.id, found, key="k", base=base, changes=changes, summary="src/a b.py +1 -1")
    return found


@proves("R-TOOL-19", part="files on the run's page")
def test_the_tab_shows_what_was_changed_and_gives_the_files(auditor: Client, run: UUID) -> None:
    answer = auditor.get(f"/runs/{run}?tab=files")
    page = text(answer)
    for said in (
        "src/a b.py",
        "changed, +1 −1",
        "gone.txt",
        "deleted, +0 −1",
        "new.txt",
        "Files at revision 1",
    ):
        assert said in page
    assert EVIL.encode() not in answer.content
    got = auditor.get(f"/runs/{run}/file?path=src/a%20b.py&revision=1")
    assert got.content == EVIL.encode()
    assert got["Content-Type"] == "application/octet-stream"
    assert got["Content-Disposition"].startswith("attachment")
    assert auditor.get(f"/runs/{run}/file?path=src/a%20b.py&revision=0").content == b"one\n"
    assert auditor.get(f"/runs/{run}/files.zip").content[:2] == b"PK"


@pytest.mark.parametrize(
    "address",
    [
        "file?path=../etc/passwd",
        "file",
        "file?path=new.txt&revision=0",
        "files.zip?revision=9",
        "file?path=new.txt&revision=x",
    ],
)
def test_what_is_not_there_is_not_found(auditor: Client, run: UUID, address: str) -> None:
    assert auditor.get(f"/runs/{run}/{address}").status_code == 404


def test_a_run_without_files_says_so(world: World, auditor: Client) -> None:
    run = world.submit("tool-loop", "Nothing to mend.")
    assert "No files" in text(auditor.get(f"/runs/{run}?tab=files"))


@proves("R-LOOP-21", part="shown where tools are shown")
def test_a_tool_that_this_machine_cannot_call_says_why(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_tools()["sandbox.tests"], "lacks", lambda: "bubblewrap is not installed")
    assert "bubblewrap is not installed" in text(auditor.get("/tools"))
    page = text(auditor.get("/tools/sandbox.tests"))
    assert "This tool cannot be called on this machine." in page
    assert "bubblewrap is not installed" in page


@proves("R-LOOP-21", part="missing isolation is shown")
@pytest.mark.parametrize(
    ("insisted", "words"),
    [(False, "Scripts run by their interpreter alone."), (True, "Scripts, programs and tests are refused.")],
)
def test_pages_say_where_scripts_are_not_isolated(
    auditor: Client, monkeypatch: pytest.MonkeyPatch, settings: Settings, insisted: bool, words: str
) -> None:
    shipped_tools()
    monkeypatch.setattr(bubblewrap, "explain_unavailability", lambda: "namespaces are forbidden")
    settings.INTERLOCK_SCRIPT_ISOLATION = "required" if insisted else "preferred"
    system = text(auditor.get("/system"))
    assert "namespaces are forbidden" in system
    assert words in system
    page = text(auditor.get("/tools/sandbox.script"))
    assert ("This tool cannot be called on this machine." in page) is insisted
    assert ("On this machine it runs without the system's isolation." in unescape(page)) is not insisted
    assert ("Not isolated" in text(auditor.get("/tools"))) is not insisted


def test_pages_say_nothing_where_scripts_are_isolated(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped_tools()
    monkeypatch.setattr(bubblewrap, "explain_unavailability", lambda: "")
    assert "code of a model runs in bubblewrap" in text(auditor.get("/system"))
    assert "Not isolated" not in text(auditor.get("/tools"))
