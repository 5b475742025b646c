"""Files by the API: handed in with a task, fetched again, and what was changed."""

import base64
import io
import zipfile
from typing import Any
from uuid import UUID

import pytest

from orchestrator.console.queries.run_summary import load_manifest_body
from orchestrator.knowledge.actions.workspace import change_files
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.api.program import Program, refusal
from tests.factories.world import World
from tests.proves import proves

GIVEN = [
    {"path": "src/app.py", "text": "def add(a, b):\n    return a - b\n"},
    {"path": "x.bin", "base64": base64.b64encode(b"\0\xff").decode()},
]
BODY: dict[str, Any] = {"workflow": "tool-loop", "goal": {"objective": "Mend the adder."}}


def changed(world: World, run: UUID, base: str) -> None:
    """One change of the run's files."""
    body = b"def add(a, b):\n    return a + b\n"
    with tenant_transaction(world.id):
        change_files(world.id, run, key="k", base=base, changes={"src/app.py": body}, summary="+1 -1")


@proves("R-TOOL-19", part="files handed in and fetched")
def test_files_are_handed_in_with_a_task_and_fetched_again(
    world: World, client_program: Program, auditor: Program
) -> None:
    run = client_program.post("/tasks", BODY | {"files": GIVEN}).json()["run"]["id"]
    listed = auditor.get(f"/runs/{run}/files").json()
    assert [one["path"] for one in listed["files"]] == ["src/app.py", "x.bin"]
    assert [(one["number"], one["cause"]) for one in listed["revisions"]] == [(0, "handed")]
    with tenant_transaction(world.id):
        assert load_manifest_body(UUID(run))["files"] == listed["digest"]
    got = auditor.get(f"/runs/{run}/files/content/x.bin")
    assert (got.content, got["Content-Type"]) == (b"\0\xff", "application/octet-stream")
    assert got["Content-Disposition"].startswith("attachment")
    changed(world, UUID(run), listed["digest"])
    first = auditor.get(f"/runs/{run}/files/content/src/app.py", {"revision": 0})
    assert first.content.endswith(b"- b\n")
    packed = auditor.get(f"/runs/{run}/files/archive")
    with zipfile.ZipFile(io.BytesIO(packed.content)) as found:
        assert found.read("src/app.py").endswith(b"+ b\n")
    diff = auditor.get(f"/runs/{run}/files/diff").content.decode()
    assert "-    return a - b\n+    return a + b\n" in diff
    assert "x.bin" not in diff


@proves("R-TOOL-19", part="path jail, at the door")
@pytest.mark.parametrize(
    ("files", "status"),
    [
        ([{"path": "../x", "text": ""}], 422),
        ([{"path": "/etc/x", "text": ""}], 422),
        ([{"path": "a", "text": ""}, {"path": "A", "text": ""}], 422),
        ([{"path": "a", "text": ""}, {"path": "a", "text": ""}], 400),
        ([{"path": "a"}], 400),
        ([{"path": "a", "text": "", "base64": ""}], 400),
        ([{"path": "a", "base64": "?"}], 400),
        ([{"path": "a", "text": "", "mode": "755"}], 400),
        ([{"path": f"{n}", "text": ""} for n in range(501)], 400),
    ],
)
def test_a_task_with_files_that_are_none_is_refused_whole(
    client_program: Program, auditor: Program, files: list[dict[str, str]], status: int
) -> None:
    answer = client_program.post("/tasks", BODY | {"files": files})
    assert answer.status_code == status
    assert refusal(answer)
    assert auditor.get("/runs").json()["results"] == []


def test_what_is_not_there_is_not_found(world: World, auditor: Program) -> None:
    run = world.submit("tool-loop", "Nothing.")
    assert auditor.get(f"/runs/{run}/files").json()["files"] == []
    assert auditor.get(f"/runs/{run}/files", {"revision": 3}).status_code == 404
    assert auditor.get(f"/runs/{run}/files/content/a").status_code == 404


def test_the_same_key_with_other_files_is_another_task(client_program: Program) -> None:
    first = client_program.post("/tasks", BODY | {"files": GIVEN}, once="k1").json()
    assert client_program.post("/tasks", BODY | {"files": GIVEN}, once="k1").json() == first
    assert client_program.post("/tasks", BODY | {"files": GIVEN[:1]}, once="k1").status_code == 422
