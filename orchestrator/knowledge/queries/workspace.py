"""Reads of a run's files. All inside the tenant's context."""

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from orchestrator.core.files.workspace import Entry, Tree, content_digest
from orchestrator.knowledge.models.workspace import FileContent, WorkspaceRevision
from tenancy.core.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceState:
    """A state of a run's files. A run that was given none is at revision 0, and empty."""

    run: UUID
    number: int
    tree: Tree
    cause: str = "handed"
    key: str = ""
    summary: str = ""
    at: datetime | None = None

    @property
    def digest(self) -> str:
        """The digest of the whole state."""
        return self.tree.digest


def get_newest_revision(run: UUID) -> WorkspaceState:
    """A run's files as they are."""
    row = WorkspaceRevision.objects.filter(run_id=run).order_by("-number").first()
    return _build_revision(row) if row is not None else WorkspaceState(run=run, number=0, tree=Tree())


def get_workspace_revision(run: UUID, number: int) -> WorkspaceState:
    """A run's files as they were. Raises NotFound."""
    row = WorkspaceRevision.objects.filter(run_id=run, number=number).first()
    if row is not None:
        return _build_revision(row)
    if number == 0:
        return WorkspaceState(run=run, number=0, tree=Tree())
    raise NotFound


def made_by(run: UUID, key: str) -> WorkspaceState | None:
    """The state that the call with this key made, if it did."""
    row = WorkspaceRevision.objects.filter(run_id=run, key=key).first()
    return None if row is None else _build_revision(row)


def list_workspace_revisions(run: UUID) -> list[WorkspaceState]:
    """Return every revision of a run's files, oldest first."""
    return [_build_revision(row) for row in WorkspaceRevision.objects.filter(run_id=run).order_by("number")]


def load_file_contents(run: UUID, entries: Iterable[Entry]) -> dict[str, bytes]:
    """Return the bytes of these files, by path.

    Raises: NotFound if the stored bytes of one do not match its digest.
    """
    wanted = {entry.path: entry.digest for entry in entries}
    rows = FileContent.objects.filter(run_id=run, digest__in=set(wanted.values()))
    found = {row.digest: bytes(row.body) for row in rows}
    if any(content_digest(found.get(digest, b"\0")) != digest for digest in wanted.values()):
        raise NotFound
    return {path: found[digest] for path, digest in wanted.items()}


def find_file_content(held: WorkspaceState, path: str) -> bytes | None:
    """One file's bytes; None where there is none."""
    entry = held.tree.by_path.get(path)
    return None if entry is None else load_file_contents(held.run, (entry,))[path]


def build_zip_archive(held: WorkspaceState) -> bytes:
    """All files as a zip archive, the same bytes for the same state. Raises NotFound as
    `load_file_contents`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as found:
        for path, body in load_file_contents(held.run, held.tree.entries).items():
            found.writestr(zipfile.ZipInfo(path), body, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _build_revision(row: WorkspaceRevision) -> WorkspaceState:
    entries = tuple(Entry.model_construct(**entry) for entry in row.tree)
    return WorkspaceState(
        run=row.run_id, number=row.number, tree=Tree(entries=entries), cause=row.cause, key=row.key,
        summary=row.summary, at=row.at,
    )  # fmt: skip
