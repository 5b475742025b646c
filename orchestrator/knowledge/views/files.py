"""A run's files: the tab and its downloads (R-TOOL-19)."""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from orchestrator.core.files.unified_diff import format_unified_diff
from orchestrator.core.files.workspace import list_changed_paths
from orchestrator.knowledge.api.files import build_attachment_response
from orchestrator.knowledge.queries.workspace import (
    WorkspaceState,
    build_zip_archive,
    find_file_content,
    get_newest_revision,
    get_workspace_revision,
    list_workspace_revisions,
    load_file_contents,
)
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.runs import run_of
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.web.page_auth import PageRequest, require_member

MOST_FILES = 40
MOST_LINES = 400
SIGNS = {"+": "added", "-": "removed"}
HEADS = ("--- ", "+++ ")


class Line(NamedTuple):
    """One line of a diff: kept, added or removed."""

    what: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change of one file; `more` is the number of lines that are not shown."""

    path: str
    what: str
    added: int
    removed: int
    lines: tuple[Line, ...]
    more: int


def files_of(run: Run) -> dict[str, Any]:
    """Build the context of the tab: current files, their changes and the revisions, newest first."""
    now, first = get_newest_revision(run.id), get_workspace_revision(run.id, 0)
    paths = list_changed_paths(first.tree, now.tree)
    return {
        "held": now, "changed": _list_changed_files(first, now, paths[:MOST_FILES]),
        "unshown": max(0, len(paths) - MOST_FILES), "revisions": list_workspace_revisions(run.id)[::-1],
    }  # fmt: skip


@require_safe
@require_member(Scope.READ)
def download_workspace_file(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Send one file as a download."""
    with tenant_transaction(request.member.tenant.id):
        held = _load_requested_revision(request, run_id)
        path = request.GET.get("path", "")
        body = find_file_content(held, path)
    if body is None:
        raise NotFound
    return build_attachment_response(body, path)


@require_safe
@require_member(Scope.READ)
def download_workspace_archive(request: PageRequest, run_id: UUID) -> HttpResponse:
    """Send all files as a ZIP archive."""
    with tenant_transaction(request.member.tenant.id):
        held = _load_requested_revision(request, run_id)
        return build_attachment_response(
            build_zip_archive(held), f"{held.run}-{held.number}.zip", kind="application/zip"
        )


def _load_requested_revision(request: PageRequest, run_id: UUID) -> WorkspaceState:
    run, number = run_of(run_id).id, request.GET.get("revision", "")
    if not number:
        return get_newest_revision(run)
    if not (number.isascii() and number.isdigit() and len(number) < 7):
        raise NotFound
    return get_workspace_revision(run, int(number))


def _list_changed_files(
    first: WorkspaceState, now: WorkspaceState, paths: tuple[str, ...]
) -> list[FileChange]:
    was = load_file_contents(first.run, [entry for entry in first.tree.entries if entry.path in paths])
    became = load_file_contents(now.run, [entry for entry in now.tree.entries if entry.path in paths])
    return [_build_file_change(path, was.get(path), became.get(path)) for path in paths]


def _build_file_change(path: str, before: bytes | None, after: bytes | None) -> FileChange:
    text = format_unified_diff(_to_single_file_tree(path, before), _to_single_file_tree(path, after))
    every = [line for line in text.split("\n")[:-1] if not line.startswith(HEADS)]
    shown = tuple(Line(SIGNS.get(line[:1], "kept"), _without_sign(line)) for line in every[:MOST_LINES])
    return FileChange(
        path=path, what="added" if before is None else "deleted" if after is None else "changed",
        added=sum(line.startswith("+") for line in every),
        removed=sum(line.startswith("-") for line in every),
        lines=shown, more=max(0, len(every) - MOST_LINES),
    )  # fmt: skip


def _to_single_file_tree(path: str, body: bytes | None) -> dict[str, bytes]:
    return {} if body is None else {path: body}


def _without_sign(line: str) -> str:
    return line[1:] if line[:1] in ("+", "-", " ") else line
