"""Unified diffs: parsed strictly, applied exactly (R-TOOL-19).

A hunk applies at the line it names, to the lines it names, or the whole diff is refused: a change that
shifted by some lines would be a change that no person proposed.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from orchestrator.core.files.errors import DiffRefused
from orchestrator.core.files.workspace_paths import format_path, safe_path

LARGEST: Final = 400_000
MOST_FILES: Final = 100
NOWHERE: Final = "/dev/null"
NO_NEWLINE: Final = "\\ No newline at end of file"
_HUNK = re.compile(r"@@ -(\d{1,7})(?:,(\d{1,7}))? \+(\d{1,7})(?:,(\d{1,7}))? @@")
_FORBIDDEN = re.compile(
    r"(rename|copy) (from|to) |GIT binary patch|Binary files |(old|new|new file|deleted file) mode (?!100644)"
)

Kind = Literal["added", "changed", "deleted"]
Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A hunk: lines kept (` `), removed (`-`) and added (`+`), each with its line end."""

    start: int
    taken: int
    put: int
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The changes to one file."""

    path: str
    kind: Kind
    hunks: tuple[Hunk, ...]

    @property
    def added_count(self) -> int:
        """Return the number of added lines."""
        return sum(sign == "+" for hunk in self.hunks for sign, _ in hunk.lines)

    @property
    def removed_count(self) -> int:
        """Return the number of removed lines."""
        return sum(sign == "-" for hunk in self.hunks for sign, _ in hunk.lines)


def read_diff(text: str) -> tuple[FileDiff, ...]:
    """Parse a unified diff into the files that it changes.

    Raises: DiffRefused, PathRefused.
    """
    if len(text) > LARGEST:
        raise DiffRefused(detail=f"it is longer than {LARGEST} characters")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    reader, found = _Reader(lines), []
    while (file := reader.file()) is not None:
        found.append(file)
        if len(found) > MOST_FILES:
            raise DiffRefused(detail=f"it changes more than {MOST_FILES} files")
    if not found:
        raise DiffRefused(detail="it changes nothing")
    paths = [file.path for file in found]
    if len(set(paths)) != len(paths):
        raise DiffRefused(detail="it changes one file twice")
    return tuple(found)


def apply_unified_diff(diff: tuple[FileDiff, ...], read: Read) -> dict[str, bytes | None]:
    """Apply the diff; return the new content of each file (None: deleted).

    `read` returns a file's bytes, or None if there is no such file.
    Raises: DiffRefused if the diff does not fit exactly; nothing is applied in part.
    """
    return {file.path: _apply_file_diff(file, read(file.path)) for file in diff}


def format_unified_diff(before: Mapping[str, bytes], after: Mapping[str, bytes], *, context: int = 3) -> str:
    """Format the difference of two sets of files as a unified diff; binary files are only named."""
    parts: list[str] = []
    for path in sorted({*before, *after}):
        was, now = before.get(path), after.get(path)
        if was == now:
            continue
        parts.extend(_format_file_diff(path, was, now, context))
    return "".join(parts)


def text_of(content: bytes) -> str | None:
    """Return a file's text; None if it is not UTF-8 text."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


class _Reader:
    """Reader of the lines of a diff."""

    def __init__(self, lines: list[str]) -> None:
        self._lines, self._at = lines, 0

    def file(self) -> FileDiff | None:
        """Return the next file, or None at the end."""
        self._skip_headers()
        if self._at >= len(self._lines):
            return None
        old, new = self._name("--- "), self._name("+++ ")
        if old == new == NOWHERE:
            raise DiffRefused(detail="it has neither an old nor a new file")
        if old != new and NOWHERE not in (old, new):
            raise DiffRefused(
                detail=f"it names {format_path(old)} and {format_path(new)}: files are not renamed"
            )
        kind: Kind = "added" if old == NOWHERE else "deleted" if new == NOWHERE else "changed"
        path = safe_path(new if old == NOWHERE else old)
        hunks: list[Hunk] = []
        while self._peek().startswith("@@"):
            hunks.append(self._hunk())
        if not hunks and kind == "changed":
            raise DiffRefused(detail=f"nothing stands below the name {format_path(path)}")
        return FileDiff(path=path, kind=kind, hunks=tuple(hunks))

    def _peek(self) -> str:
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _skip_headers(self) -> None:
        """Skip the lines that git writes before the file names; refuse modes and renames."""
        while self._at < len(self._lines) and not self._peek().startswith("--- "):
            line = self._peek()
            if line.startswith(("@@", "+", "-", " ")) and line.strip():
                raise DiffRefused(detail=f"line {self._at + 1} stands in no file")
            if _FORBIDDEN.match(line):
                raise DiffRefused(detail=f"line {self._at + 1}: only the text of plain files is changed")
            self._at += 1

    def _name(self, sign: str) -> str:
        line = self._peek()
        if not line.startswith(sign):
            raise DiffRefused(detail=f"line {self._at + 1}: a name after {sign.strip()} is wanted")
        self._at += 1
        name = line[len(sign) :].split("\t", 1)[0].removesuffix("\r")
        if name == NOWHERE:
            return name
        prefix = "a/" if sign == "--- " else "b/"
        return name.removeprefix(prefix)

    def _hunk(self) -> Hunk:
        head = _HUNK.match(self._peek())
        if head is None:
            raise DiffRefused(detail=f"line {self._at + 1} is no place of a hunk")
        number = self._at + 1
        self._at += 1
        start, taken, put = int(head[1]), _parse_hunk_count(head[2]), _parse_hunk_count(head[4])
        lines: list[tuple[str, str]] = []
        old = new = 0
        while old < taken or new < put:
            sign, text = self._line(number)
            old, new = old + (sign != "+"), new + (sign != "-")
            lines.append((sign, text))
        if old != taken or new != put:
            raise DiffRefused(detail=f"the hunk at line {number} has not the lines it says")
        return Hunk(start=start, taken=taken, put=put, lines=tuple(lines))

    def _line(self, number: int) -> tuple[str, str]:
        if self._at >= len(self._lines):
            raise DiffRefused(detail=f"the hunk at line {number} ends too early")
        line = self._peek()
        # Some tools omit the single space of an empty line.
        sign, text = (line[0], line[1:]) if line else (" ", "")
        if sign not in " +-":
            raise DiffRefused(detail=f"line {self._at + 1} begins with neither space, + nor -")
        self._at += 1
        ends = "\n"
        if self._peek() == NO_NEWLINE:
            self._at += 1
            ends = ""
        return sign, text + ends


def _parse_hunk_count(given: str | None) -> int:
    return 1 if given is None else int(given)


def _apply_file_diff(file: FileDiff, content: bytes | None) -> bytes | None:
    if file.kind == "added":
        if content is not None:
            raise DiffRefused(detail=f"{file.path} is there already")
        before: list[str] = []
    else:
        if content is None:
            raise DiffRefused(detail=f"there is no {file.path}")
        text = text_of(content)
        if text is None:
            raise DiffRefused(detail=f"{file.path} is no text")
        before = _split_lines(text)
    after = _with_hunks(file, before)
    if file.kind != "deleted":
        return "".join(after).encode()
    if after:
        raise DiffRefused(detail=f"{file.path} would be deleted, and lines of it would be left")
    return None


def _with_hunks(file: FileDiff, before: list[str]) -> list[str]:
    after: list[str] = []
    at = 0
    for hunk in file.hunks:
        start = hunk.start - 1 if hunk.taken else hunk.start
        old = [text for sign, text in hunk.lines if sign != "+"]
        if start < at or before[start : start + hunk.taken] != old:
            raise DiffRefused(detail=f"{file.path} is not as the diff has it at line {hunk.start}")
        after += before[at:start] + [text for sign, text in hunk.lines if sign != "-"]
        at = start + hunk.taken
    return after + before[at:]


def _split_lines(text: str) -> list[str]:
    """Split a text at line feeds alone, as a diff does."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _format_file_diff(path: str, was: bytes | None, now: bytes | None, context: int) -> list[str]:
    old, new = (None if side is None else text_of(side) for side in (was, now))
    names = (f"a/{path}" if was is not None else NOWHERE), (f"b/{path}" if now is not None else NOWHERE)
    if (was is not None and old is None) or (now is not None and new is None):
        return [f"Binary files {names[0]} and {names[1]} differ\n"]
    if not old and not new:
        return [f"--- {names[0]}\n", f"+++ {names[1]}\n"]
    found = difflib.unified_diff(_split_lines(old or ""), _split_lines(new or ""), *names, n=context)
    return [line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in found]
