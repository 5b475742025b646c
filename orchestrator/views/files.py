"""A run's files: its tab, and what is downloaded from there (R-TOOL-19)."""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from orchestrator.api.files import attached
from orchestrator.core.files.unified_diff import unified
from orchestrator.core.files.workspace import differing
from orchestrator.models import Run
from orchestrator.queries.runs import run_of
from orchestrator.queries.workspace import Held, archive, content, contents, newest, revision, revisions
from tenancy.core.errors import NotFound
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant
from tenancy.web.page_auth import PageRequest, page

MOST_FILES = 40
MOST_LINES = 400
SIGNS = {"+": "added", "-": "removed"}
HEADS = ("--- ", "+++ ")


class Line(NamedTuple):
    """A line: kept, added or removed."""

    what: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What was changed in one file; `more` lines are not shown."""

    path: str
    what: str
    added: int
    removed: int
    lines: tuple[Line, ...]
    more: int


def files_of(run: Run) -> dict[str, Any]:
    """What the tab shows: the files as they are, what was changed in them, and when."""
    now, first = newest(run.id), revision(run.id, 0)
    paths = differing(first.tree, now.tree)
    return {
        "held": now, "changed": _changed(first, now, paths[:MOST_FILES]),
        "unshown": max(0, len(paths) - MOST_FILES), "revisions": revisions(run.id)[::-1],
    }  # fmt: skip


@require_safe
@page(Scope.READ)
def file(request: PageRequest, run_id: UUID) -> HttpResponse:
    """One file, as a download."""
    with tenant(request.member.tenant.id):
        held = _asked(request, run_id)
        path = request.GET.get("path", "")
        body = content(held, path)
    if body is None:
        raise NotFound
    return attached(body, path)


@require_safe
@page(Scope.READ)
def every(request: PageRequest, run_id: UUID) -> HttpResponse:
    """All files in an archive."""
    with tenant(request.member.tenant.id):
        held = _asked(request, run_id)
        return attached(archive(held), f"{held.run}-{held.number}.zip", kind="application/zip")


def _asked(request: PageRequest, run_id: UUID) -> Held:
    run, number = run_of(run_id).id, request.GET.get("revision", "")
    if not number:
        return newest(run)
    if not (number.isascii() and number.isdigit() and len(number) < 7):
        raise NotFound
    return revision(run, int(number))


def _changed(first: Held, now: Held, paths: tuple[str, ...]) -> list[Changed]:
    was = contents(first.run, [entry for entry in first.tree.entries if entry.path in paths])
    became = contents(now.run, [entry for entry in now.tree.entries if entry.path in paths])
    return [_one(path, was.get(path), became.get(path)) for path in paths]


def _one(path: str, before: bytes | None, after: bytes | None) -> Changed:
    text = unified(_alone(path, before), _alone(path, after))
    every = [line for line in text.split("\n")[:-1] if not line.startswith(HEADS)]
    shown = tuple(Line(SIGNS.get(line[:1], "kept"), _without_sign(line)) for line in every[:MOST_LINES])
    return Changed(
        path=path, what="added" if before is None else "deleted" if after is None else "changed",
        added=sum(line.startswith("+") for line in every),
        removed=sum(line.startswith("-") for line in every),
        lines=shown, more=max(0, len(every) - MOST_LINES),
    )  # fmt: skip


def _alone(path: str, body: bytes | None) -> dict[str, bytes]:
    return {} if body is None else {path: body}


def _without_sign(line: str) -> str:
    return line[1:] if line[:1] in ("+", "-", " ") else line
