"""The files of a run: a tree of named contents, always of one state that has a digest (R-TOOL-19)."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Final

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel, Hex
from orchestrator.core.files.errors import WorkspaceRefused
from orchestrator.core.files.workspace_paths import check_together, safe_path
from traces.core.canonical import compute_digest, encode_canonical

MOST_FILES: Final = 500
LARGEST_FILE: Final = 1024 * 1024
LARGEST_TREE: Final = 8 * 1024 * 1024
MOST_REVISIONS: Final = 500

Size = Annotated[int, Field(ge=0, le=LARGEST_FILE)]


class Entry(FrozenModel):
    """A file: its path, the SHA-256 of its bytes, and how many they are."""

    path: str
    digest: Hex
    size: Size


class Tree(FrozenModel):
    """The files of a workspace at one moment, by path."""

    entries: tuple[Entry, ...] = ()

    @property
    def digest(self) -> str:
        """One digest (hex) of all names and contents: what a change says it was made for."""
        return compute_digest("workspace", encode_canonical([entry.model_dump() for entry in self.entries]))

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(entry.size for entry in self.entries)

    @property
    def by_path(self) -> dict[str, Entry]:
        """The files by their path."""
        return {entry.path: entry for entry in self.entries}


def content_digest(content: bytes) -> str:
    """The SHA-256 of a file's bytes (hex)."""
    return sha256(content).hexdigest()


def tree_of(files: Mapping[str, bytes]) -> Tree:
    """The tree of these files. Raises PathRefused, WorkspaceRefused."""
    return build_workspace_tree(
        Entry.model_construct(path=path, digest=content_digest(content), size=len(content))
        for path, content in files.items()
    )


def build_workspace_tree(entries: Iterable[Entry]) -> Tree:
    """A tree of these files, in order and within bounds. Raises PathRefused, WorkspaceRefused."""
    found = sorted(entries, key=lambda entry: entry.path)
    if len(found) > MOST_FILES:
        raise WorkspaceRefused(detail=f"it would hold {len(found)} files, and {MOST_FILES} are the most")
    for entry in found:
        safe_path(entry.path)
        if entry.size > LARGEST_FILE:
            raise WorkspaceRefused(detail=f"{entry.path} is larger than {LARGEST_FILE} bytes")
    check_together(entry.path for entry in found)
    tree = Tree(entries=tuple(found))
    if tree.size > LARGEST_TREE:
        raise WorkspaceRefused(detail=f"it would hold more than {LARGEST_TREE} bytes")
    return tree


def with_changed_files(tree: Tree, changes: Mapping[str, bytes | None]) -> Tree:
    """The tree with these files put in, or taken out (None). Raises PathRefused, WorkspaceRefused."""
    held = tree.by_path
    for path, content in changes.items():
        if content is None:
            held.pop(path, None)
        else:
            held[path] = Entry.model_construct(path=path, digest=content_digest(content), size=len(content))
    return build_workspace_tree(held.values())


def list_changed_paths(before: Tree, after: Tree) -> tuple[str, ...]:
    """The paths at which two trees are not the same, in order."""
    was, now = before.by_path, after.by_path
    return tuple(path for path in sorted({*was, *now}) if was.get(path) != now.get(path))
