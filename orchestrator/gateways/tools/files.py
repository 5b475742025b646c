"""The port by which a tool changes the files of its run; whoever performs calls lends it."""

from collections.abc import Mapping
from typing import Protocol

from orchestrator.queries.workspace import Held


class Files(Protocol):
    """Changes the files of one run, each call once a key, inside the tenant's transaction.

    Raises WorkspaceMoved where they are not in the state `base` any more, PathRefused, WorkspaceRefused.
    """

    def change(self, *, key: str, base: str, changes: Mapping[str, bytes | None], summary: str) -> Held:
        """Put files in, or take them out (None); the state that was made."""
        ...

    def restore(self, *, key: str, base: str, number: int) -> Held:
        """Make an earlier state the next one; raises NotFound where there is none."""
        ...
