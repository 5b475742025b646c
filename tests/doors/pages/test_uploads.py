"""Files that a task comes with, by the form: named, unpacked, bounded (R-UI-10, R-TOOL-19)."""

import zipfile
from io import BytesIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from orchestrator import bundled_content
from orchestrator.core.common.errors import PathRefused, WorkspaceRefused
from orchestrator.core.files.workspace import LARGEST_FILE, MOST_FILES
from orchestrator.knowledge.queries.workspace import find_file_content, get_newest_revision
from orchestrator.publishing.actions.versions import publish_workflow
from orchestrator.runs.models.run import Run
from orchestrator.runs.views.uploads import files_in
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.pages.people import at, text
from tests.doors.pages.people import world as world
from tests.factories.world import World
from tests.proves import proves

TOOLS = ("calculator.*", "clock.*", "files.*")
APP = b"def add(a, b):\n    return a - b\n"


def sent(name: str, body: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, body)


def packed(files: dict[str, bytes], **more: Any) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in files.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = more.get("attr", 0)
            archive.writestr(info, body, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def test_files_keep_their_names_and_an_archive_its_folders() -> None:
    found = files_in([sent("a.py", APP), sent("t.zip", packed({"tests/test_a.py": b"1"}))], "/src/")
    assert found == {"src/a.py": APP, "src/tests/test_a.py": b"1"}


@proves("R-UI-10", part="files, bounded")
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([sent("big", b"x" * (LARGEST_FILE + 1))], "larger than"),
        ([sent("a.zip", packed({"big": b"\0" * (LARGEST_FILE + 1)}))], "larger than"),
        ([sent("a.zip", packed({f"f{n}": b"" for n in range(MOST_FILES + 1)}))], "more than 500 files"),
        ([sent("a.zip", packed({f"f{n}": b"\0" * LARGEST_FILE for n in range(9)}))], "more than"),
        ([sent("a.zip", packed({"link": b"/etc/passwd"}, attr=0o120777 << 16))], "no plain file"),
        ([sent("a.zip", b"PK nonsense")], "no archive"),
        ([sent("a", b"1"), sent("a", b"2")], "given twice"),
    ],
)
def test_what_is_too_much_or_no_file_is_refused(files: list[Any], said: str) -> None:
    with pytest.raises(WorkspaceRefused, match=said):
        files_in(files, "")


@proves("R-UI-10", part="files, damaged")
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("at", range(42, 66, 6))
def test_an_archive_with_a_flipped_byte_is_refused(method: int, at: int) -> None:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a", b"".join(b"%d\n" % (n * n) for n in range(900)), method)
    damaged = bytearray(made.getvalue())
    damaged[at] ^= 0xFF
    with pytest.raises(WorkspaceRefused, match="no archive"):
        files_in([sent("a.zip", bytes(damaged))], "")


@proves("R-TOOL-19", part="path jail, of an archive")
@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a\\b", "C:/x", "a/../../b", "a\u202eb"])
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(PathRefused):
        files_in([sent("a.zip", packed({path: b"1"}))], "")


@proves("R-UI-10", part="files")
def test_a_form_brings_files_where_the_workflow_works_on_some(world: World) -> None:
    with tenant_transaction(world.id):
        mend = bundled_content.get_bundled_workflow("tool-loop").evolve(
            slug="mend", boundary="coding", tools=TOOLS
        )
        publish_workflow(world.id, mend, by=None)
    who = at(world.people.operator)
    assert 'name="files"' not in text(who.get("/new/tool-loop"))
    assert 'enctype="multipart/form-data"' in text(who.get("/new/mend"))
    given = {"key": str(fresh_id()), "objective": "Mend it.", "folder": "src"}
    bad = who.post("/new/mend", {**given, "files": [sent("a.zip", packed({"../x": b"1"}))]})
    assert (bad.status_code, "Choose them again" in text(bad)) == (422, True)
    first = who.post("/new/mend", {**given, "files": [sent("app.py", APP)]})
    again = who.post("/new/mend", {**given, "files": [sent("app.py", APP)]})
    assert (first.status_code, again["Location"]) == (302, first["Location"])
    other = who.post("/new/mend", {**given, "files": [sent("app.py", b"else")]})
    assert other.status_code == 409
    stray = {**given, "key": str(fresh_id()), "files": [sent("app.py", APP)]}
    assert "works on no files" in text(who.post("/new/tool-loop", stray))
    with tenant_transaction(world.id):
        run = Run.objects.get()
        held = get_newest_revision(run.id)
        assert [entry.path for entry in held.tree.entries] == ["src/app.py"]
        assert find_file_content(held, "src/app.py") == APP
