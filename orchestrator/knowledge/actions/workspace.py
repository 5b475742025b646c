"""Write a run's files: each change stores a new revision, once per key (R-TOOL-19, R-TOOL-9)."""

from collections.abc import Mapping
from uuid import UUID

from orchestrator.core.files.errors import WorkspaceMoved, WorkspaceRefused
from orchestrator.core.files.workspace import (
    MOST_REVISIONS,
    Tree,
    content_digest,
    tree_of,
    with_changed_files,
)
from orchestrator.knowledge.models.workspace import FileContent, WorkspaceRevision
from orchestrator.knowledge.queries.workspace import (
    WorkspaceState,
    get_newest_revision,
    get_workspace_revision,
    made_by,
)
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, take_advisory_lock

HANDED = "handed"
CARRY_CONTENTS = """
INSERT INTO orchestrator_filecontent (id, tenant_id, run_id, digest, body)
SELECT gen_random_uuid(), tenant_id, %(run)s, digest, body FROM orchestrator_filecontent
 WHERE run_id = %(source)s"""
CARRY_REVISIONS = """
INSERT INTO orchestrator_workspacerevision
  (id, tenant_id, run_id, number, key, cause, tree, digest, summary, at)
SELECT gen_random_uuid(), tenant_id, %(run)s, number, key, cause, tree, digest, summary, at
  FROM orchestrator_workspacerevision WHERE run_id = %(source)s"""


def hand_in(tenant_id: UUID, run: UUID, files: Mapping[str, bytes]) -> WorkspaceState:
    """Store the files that a task comes with, as revision 0. Joins the caller's transaction.

    Raises: PathRefused, WorkspaceRefused.
    """
    return _store_revision(tenant_id, run, 0, HANDED, "handed", tree_of(files), files, "")


def change_files(
    tenant_id: UUID,
    run: UUID,
    *,
    key: str,
    base: str,
    changes: Mapping[str, bytes | None],
    summary: str,
) -> WorkspaceState:
    """Store the next revision of a run's files. Joins the caller's transaction.

    The same key again returns the revision that it made. `base` is the digest of the revision that the
    changes were made for.

    Raises: WorkspaceMoved if the files have changed since `base`, PathRefused, WorkspaceRefused.
    """
    done, now = _lock_base_revision(tenant_id, run, key, base)
    if done is not None:
        return done
    tree = with_changed_files(now.tree, changes)
    put = {path: content for path, content in changes.items() if content is not None}
    return _store_revision(tenant_id, run, now.number + 1, key, "changed", tree, put, summary)


def restore_files(tenant_id: UUID, run: UUID, *, key: str, base: str, number: int) -> WorkspaceState:
    """Store an earlier revision's files as the next revision, once per key. Joins the caller's transaction.

    Raises: WorkspaceMoved, WorkspaceRefused, NotFound.
    """
    done, now = _lock_base_revision(tenant_id, run, key, base)
    if done is not None:
        return done
    earlier = get_workspace_revision(run, number)
    summary = f"as it was at revision {number}"
    return _store_revision(tenant_id, run, now.number + 1, key, "restored", earlier.tree, {}, summary)


def _lock_base_revision(
    tenant_id: UUID, run: UUID, key: str, base: str
) -> tuple[WorkspaceState | None, WorkspaceState]:
    """Return the revision that the key has already made, if any, and the newest one. One writer at a time.

    Raises: WorkspaceMoved, WorkspaceRefused.
    """
    take_advisory_lock(f"workspace:{tenant_id}:{run}")
    now = get_newest_revision(run)
    done = made_by(run, key)
    if done is None and now.digest != base:
        raise WorkspaceMoved(now=now.digest[:12], base=base[:12])
    if done is None and now.number + 1 >= MOST_REVISIONS:
        raise WorkspaceRefused(detail=f"it has been changed {MOST_REVISIONS} times")
    return done, now


def _store_revision(
    tenant_id: UUID,
    run: UUID,
    number: int,
    key: str,
    cause: str,
    tree: Tree,
    files: Mapping[str, bytes],
    summary: str,
) -> WorkspaceState:
    FileContent.objects.bulk_create(
        [
            FileContent(tenant_id=tenant_id, run_id=run, digest=digest, body=content)
            for digest, content in {content_digest(one): one for one in files.values()}.items()
        ],
        ignore_conflicts=True,
    )
    row = WorkspaceRevision.objects.create(
        tenant_id=tenant_id, run_id=run, number=number, key=key, cause=cause, digest=tree.digest,
        tree=[entry.model_dump() for entry in tree.entries], summary=summary[:300], at=database_now(),
    )  # fmt: skip
    return WorkspaceState(
        run=run, number=number, tree=tree, cause=cause, key=key, summary=row.summary, at=row.at
    )


def carry_files(source: UUID, run: UUID) -> None:
    """Copy the files of a run to its retry, with every revision. Joins the caller's transaction.

    A change that is requested again under its key therefore returns the revision that it made.
    """
    cursor = raw_cursor()
    for statement in (CARRY_CONTENTS, CARRY_REVISIONS):
        cursor.execute(statement, {"source": source, "run": run})


class RunFiles:
    """A run's files for a tool call. Use in the tenant's transaction."""

    def __init__(self, tenant_id: UUID, run: UUID) -> None:
        self._tenant, self._run = tenant_id, run

    def change(
        self, *, key: str, base: str, changes: Mapping[str, bytes | None], summary: str
    ) -> WorkspaceState:
        """Call `change_files` for this run."""
        return change_files(self._tenant, self._run, key=key, base=base, changes=changes, summary=summary)

    def restore(self, *, key: str, base: str, number: int) -> WorkspaceState:
        """Call `restore_files` for this run."""
        return restore_files(self._tenant, self._run, key=key, base=base, number=number)
