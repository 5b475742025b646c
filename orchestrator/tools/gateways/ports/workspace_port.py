"""The port by which a tool changes the files of its run; whoever performs calls lends it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from orchestrator.core.files.errors import WorkspaceMoved
from orchestrator.core.files.workspace import Tree, with_changed_files
from orchestrator.knowledge.queries.workspace import (
    WorkspaceState,
    get_newest_revision,
    get_workspace_revision,
)


class Files(Protocol):
    """Changes the files of one run, each call once a key, inside the tenant's transaction.

    Raises WorkspaceMoved where they are not in the state `base` any more, PathRefused, WorkspaceRefused.
    """

    def change(
        self, *, key: str, base: str, changes: Mapping[str, bytes | None], summary: str
    ) -> WorkspaceState:
        """Put files in, or take them out (None); the state that was made."""
        ...

    def restore(self, *, key: str, base: str, number: int) -> WorkspaceState:
        """Make an earlier state the next one; raises NotFound where there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFiles:
    """A run's files for a call in isolation: changed in thought alone, and what would come of it is told."""

    run: UUID

    def change(
        self, *, key: str, base: str, changes: Mapping[str, bytes | None], summary: str
    ) -> WorkspaceState:
        """As Files says, but nothing is kept."""
        now = self._at(base)
        return self._next(now, key, with_changed_files(now.tree, changes), summary)

    def restore(self, *, key: str, base: str, number: int) -> WorkspaceState:
        """As Files says, but nothing is kept."""
        now = self._at(base)
        return self._next(
            now, key, get_workspace_revision(self.run, number).tree, f"as it was at revision {number}"
        )

    def _at(self, base: str) -> WorkspaceState:
        now = get_newest_revision(self.run)
        if now.digest != base:
            raise WorkspaceMoved(now=now.digest[:12], base=base[:12])
        return now

    def _next(self, now: WorkspaceState, key: str, tree: Tree, summary: str) -> WorkspaceState:
        return WorkspaceState(run=self.run, number=now.number + 1, tree=tree, key=key, summary=summary)
