"""files.*: the files of a run, read, searched and changed by diffs that fit exactly (R-TOOL-19).

They are the run's own: handed in with its task, kept in the database in every state, never on a disk. A
change says for which state it was made, is done once a key, is read back from what is kept, and can be taken
back. What stands in a file is data from outside, whoever put it there.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict, TypeVar
from uuid import UUID

from pydantic import Field

from orchestrator.core.domain.tool_spec import Compensation, ReadBack, Reversibility, Risk, Verifier
from orchestrator.core.files import unified_diff
from orchestrator.core.files.errors import WorkspaceMoved
from orchestrator.core.files.unified_diff import FileDiff, text_of
from orchestrator.core.files.workspace import Tree, content_digest, with_changed_files
from orchestrator.core.files.workspace_paths import is_within_folder, safe_path
from orchestrator.knowledge.queries.workspace import (
    WorkspaceState,
    find_file_content,
    get_newest_revision,
    get_workspace_revision,
    load_file_contents,
)
from orchestrator.tools.gateways.egress.service_client import ToolContext
from orchestrator.tools.gateways.ports.workspace_port import Files
from orchestrator.tools.gateways.registry import ToolResult, tool
from orchestrator.tools.gateways.tenant_services import in_house
from orchestrator.tools.gateways.tool_errors import build_tool_refusal, in_words

T = TypeVar("T")
LONGEST_LINE = 2_000
MOST_LINES = 2_000
MOST_HITS = 200
NARROW_FILES = 20

Path = Annotated[str, Field(min_length=1, max_length=240, description="such as src/app.py")]
Folder = Annotated[str, Field(max_length=240, description="only below it; empty for all")]
Digest = Annotated[
    str, Field(pattern=r"^[0-9a-f]{64}$", description="the digest of the state it was made for")
]
Diff = Annotated[str, Field(min_length=1, max_length=unified_diff.LARGEST, description="a unified diff")]


class State(ToolResult):
    """`digest` is that of all names and contents, as they were read; changes name it."""

    revision: int
    digest: str
    files: int
    bytes: int


class File(ToolResult):
    path: str
    digest: str
    size: int


class Listing(State):
    folder: str
    listed: list[File]


class Text(ToolResult):
    """`text` holds the lines from `first` on, `lines` of them, of `of`. `state` is what changes
    name."""

    path: str
    state: str
    digest: str
    size: int
    first: int
    lines: int
    of: int
    cut: bool
    text: str


class Hit(ToolResult):
    path: str
    line: int
    text: str


class Hits(ToolResult):
    looked_for: str
    state: str
    more: bool
    hits: list[Hit]


class Change(ToolResult):
    path: str
    kind: str
    added: int
    removed: int


class Proposal(ToolResult):
    """`base` is the state that it was made for, `digest` the state that it makes."""

    base: str
    digest: str
    files: int
    changes: list[Change]


class Applied(Proposal):
    """`before` is the revision that it can be taken back to."""

    revision: int
    before: int


class Restored(ToolResult):
    revision: int
    before: int
    digest: str
    restored: int


class _Reading(TypedDict):
    category: str
    risk: Risk
    reversibility: Reversibility
    parallel_safe: bool
    rate_per_minute: int
    timeout_ms: int


READ: _Reading = {
    "category": "files", "risk": Risk.READ_ONLY, "reversibility": Reversibility.PURE,
    "parallel_safe": True, "rate_per_minute": 600, "timeout_ms": 10_000,
}  # fmt: skip
STANDS = Verifier(
    name="read_back",
    read_back=ReadBack(
        tool="files.state", arguments={},
        equal={"/revision": "/result/revision", "/digest": "/result/digest"},
    ),
)  # fmt: skip
BACK = Compensation(
    tool="files.restore",
    arguments={"revision": "/result/before", "base": "/result/digest"},
    wanted="The files are as they were at revision {revision}.",
)


@tool(name="files.state", capability="file_state", trust="trusted", facts={"state": "/digest"}, **READ)
async def read_file_state(context: ToolContext) -> State:
    """The state the run's files are in: its digest, which changes have to name, and how much there is."""

    def look(held: WorkspaceState) -> State:
        # Read, not remembered: what is told here verifies what was changed.
        found = load_file_contents(held.run, held.tree.entries)
        return _build_state(held, found)

    return await _at_newest(context, look)


@tool(
    name="files.list", capability="file_list", facts={"state": "/digest", "files": "/files"},
    verifier=Verifier(name="asked", equal={"/result/folder": "/arguments/folder"}), **READ,
)  # fmt: skip
async def list_files(context: ToolContext, folder: Folder) -> Listing:
    """List the run's files with their digests and sizes, and the digest of the state they are in."""

    def look(held: WorkspaceState) -> Listing:
        return Listing(
            revision=held.number,
            digest=held.digest,
            files=len(held.tree.entries),
            bytes=held.tree.size,
            folder=folder,
            listed=[
                File(**entry.model_dump())
                for entry in held.tree.entries
                if is_within_folder(entry.path, folder)
            ],
        )

    return await _at_newest(context, look)


@tool(
    name="files.read", capability="file_read",
    facts={"path": "/path", "digest": "/digest", "state": "/state", "lines": "/of"},
    verifier=Verifier(name="asked", equal={"/result/path": "/arguments/path"}),
    max_result_chars=60_000, **READ,
)  # fmt: skip
async def read_file(
    context: ToolContext,
    path: Path,
    first: Annotated[int, Field(ge=1, description="the first line, from 1")] = 1,
    lines: Annotated[int, Field(ge=1, le=MOST_LINES, description="at most so many lines")] = 500,
) -> Text:
    """Read a text file of the run, or some lines of it."""

    def look(held: WorkspaceState) -> Text:
        found = find_file_content(held, safe_path(path))
        if found is None:
            raise build_tool_refusal(f"there is no {path}")
        text = text_of(found)
        if text is None:
            raise build_tool_refusal(f"{path} is no text; it has {len(found)} bytes")
        every = text.split("\n")[: -1 if text.endswith("\n") else None] if text else []
        taken = every[first - 1 : first - 1 + lines]
        return Text(
            path=path, state=held.digest, digest=content_digest(found), size=len(found), first=first,
            lines=len(taken), of=len(every), cut=any(len(line) > LONGEST_LINE for line in taken),
            text="\n".join(line[:LONGEST_LINE] for line in taken),
        )  # fmt: skip

    return await _at_newest(context, look)


@tool(
    name="files.search", capability="file_search", facts={"state": "/state", "first": "/hits/0/path"},
    verifier=Verifier(name="asked", equal={"/result/looked_for": "/arguments/text"}), **READ,
)  # fmt: skip
async def search_files(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=200, description="the very words, in any case")],
    folder: Folder = "",
    limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="at most so many lines")] = 50,
) -> Hits:
    """Find lines of the run's text files that hold some words."""

    def look(held: WorkspaceState) -> Hits:
        found = load_file_contents(
            held.run, [entry for entry in held.tree.entries if is_within_folder(entry.path, folder)]
        )
        hits = _search_lines(found, text.casefold(), limit + 1)
        return Hits(looked_for=text, state=held.digest, more=len(hits) > limit, hits=hits[:limit])

    return await _at_newest(context, look)


@tool(
    name="files.propose_diff", capability="file_diff", facts={"makes": "/digest", "files": "/files"},
    verifier=Verifier(name="asked", equal={"/result/base": "/arguments/base"}), **READ,
)  # fmt: skip
async def propose_diff(context: ToolContext, diff: Diff, base: Digest) -> Proposal:
    """See whether a unified diff fits the run's files, and what it would change. Changes nothing."""
    return await _at_newest(context, lambda held: _build_proposal(held, diff, base)[0])


@tool(
    name="files.apply_diff", category="files", capability="file_write", risk=Risk.LOCAL_WRITE,
    reversibility=Reversibility.REVERSIBLE, honours_keys=True, timeout_ms=15_000, rate_per_minute=60,
    side_effects="the run's own files", verifier=STANDS, compensation=BACK, conflict_keys=("files",),
    isolation="copy",
    effect_sentence="Change files of the run by a diff.", blast_radius="the run's own files",
    facts={"state": "/digest", "revision": "/revision", "files": "/files"},
)  # fmt: skip
async def apply_diff(context: ToolContext, diff: Diff, base: Digest) -> Applied:
    """Change the run's files by a unified diff that fits exactly. `base` is the digest of the state that it
    was made for. Deletes nothing, and changes at most 20 files; for more there is files.apply_broad."""
    return await _apply_changes(context, diff, base, narrow=True)


@tool(
    name="files.apply_broad", category="files", capability="file_write_broad",
    risk=Risk.DESTRUCTIVE, reversibility=Reversibility.REVERSIBLE, honours_keys=True, timeout_ms=15_000,
    side_effects="the run's own files", verifier=STANDS, compensation=BACK, conflict_keys=("files",),
    isolation="copy",
    effect_sentence="Change or delete many files of the run by a diff.",
    blast_radius="any of the run's own files",
    facts={"state": "/digest", "revision": "/revision", "files": "/files"},
)  # fmt: skip
async def apply_broad(context: ToolContext, diff: Diff, base: Digest) -> Applied:
    """Change the run's files by a unified diff that also deletes files, or changes many. A person approves
    it."""
    return await _apply_changes(context, diff, base, narrow=False)


@tool(
    name="files.restore", category="files", capability="file_restore", risk=Risk.LOCAL_WRITE,
    reversibility=Reversibility.REVERSIBLE, honours_keys=True, timeout_ms=15_000, rate_per_minute=60,
    side_effects="the run's own files", verifier=STANDS, compensation=BACK, conflict_keys=("files",),
    isolation="copy",
    effect_sentence="Make an earlier state of the run's files the next one: revision {revision}.",
    blast_radius="the run's own files", facts={"state": "/digest", "revision": "/revision"},
)  # fmt: skip
async def restore_file_revision(
    context: ToolContext,
    revision: Annotated[int, Field(ge=0, description="the get_workspace_revision to go back to")],
    base: Digest,
) -> Restored:
    """Make the run's files what they were at a revision. `base` is the digest of the state they are in."""

    def write(run: UUID, files: Files) -> Restored:
        made = files.restore(key=context.key, base=base, number=revision)
        return Restored(revision=made.number, before=made.number - 1, digest=made.digest, restored=revision)

    return await _write_files(context, write)


# -- how
# ---------------------------------------------------------------------------------------------------------


async def _at_newest(context: ToolContext, look: Callable[[WorkspaceState], T]) -> T:
    """What `look` finds in the files as they are. Raises CallFailed."""
    run = context.run
    if run is None:
        raise build_tool_refusal("this tool is called for a run")

    def found() -> T:
        return in_words(lambda: look(get_newest_revision(run)))

    return await in_house(context, found)


async def _write_files(context: ToolContext, write: Callable[[UUID, Files], T]) -> T:
    run, files = context.run, context.files
    if run is None or files is None:
        raise build_tool_refusal("this tool is called for a run")
    return await in_house(context, lambda: in_words(lambda: write(run, files)))


async def _apply_changes(context: ToolContext, diff: str, base: str, *, narrow: bool) -> Applied:
    def write(run: UUID, files: Files) -> Applied:
        held = get_newest_revision(run)
        if held.key == context.key:
            # Done before, by a call whose answer was lost: told as it was.
            held = get_workspace_revision(run, held.number - 1)
        proposal, changes, parts = _build_proposal(held, diff, base)
        if narrow and (len(parts) > NARROW_FILES or any(part.kind == "deleted" for part in parts)):
            detail = f"it deletes files, or changes more than {NARROW_FILES}: take files.apply_broad"
            raise build_tool_refusal(detail)
        made = files.change(key=context.key, base=base, changes=changes, summary=_format_summary(parts))
        return Applied(**proposal.model_dump(), revision=made.number, before=made.number - 1)

    return await _write_files(context, write)


def _build_proposal(
    held: WorkspaceState, diff: str, base: str
) -> tuple[Proposal, Mapping[str, bytes | None], tuple[FileDiff, ...]]:
    if held.digest != base:
        raise WorkspaceMoved(now=held.digest[:12], base=base[:12])
    parts = unified_diff.read_diff(diff)
    found = load_file_contents(held.run, _select_named_entries(held.tree, parts))
    changes = unified_diff.apply_unified_diff(parts, found.get)
    after = with_changed_files(held.tree, changes)
    told = [
        Change(path=one.path, kind=one.kind, added=one.added_count, removed=one.removed_count)
        for one in parts
    ]
    return Proposal(base=base, digest=after.digest, files=len(parts), changes=told), changes, parts


def _select_named_entries(tree: Tree, parts: tuple[FileDiff, ...]) -> list[Any]:
    held = tree.by_path
    return [held[part.path] for part in parts if part.path in held]


def _format_summary(parts: tuple[FileDiff, ...]) -> str:
    first = ", ".join(f"{part.path} +{part.added_count} -{part.removed_count}" for part in parts[:4])
    return first if len(parts) <= 4 else f"{first} and {len(parts) - 4} more"


def _search_lines(files: Mapping[str, bytes], wanted: str, most: int) -> list[Hit]:
    hits: list[Hit] = []
    for path, body in files.items():
        for number, line in enumerate((text_of(body) or "").split("\n"), 1):
            if wanted in line.casefold():
                hits.append(Hit(path=path, line=number, text=line[:LONGEST_LINE]))
                if len(hits) >= most:
                    return hits
    return hits


def _build_state(held: WorkspaceState, found: Mapping[str, bytes]) -> State:
    size = sum(len(body) for body in found.values())
    return State(revision=held.number, digest=held.digest, files=len(found), bytes=size)
