"""Uploaded files as the files of a run: single files, or the content of a ZIP archive (R-TOOL-19)."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterable
from io import BytesIO
from typing import Any, Final

from django.core.files.uploadedfile import UploadedFile

from orchestrator.core.common.errors import WorkspaceRefused
from orchestrator.core.common.name_patterns import named_by
from orchestrator.core.domain.graph import GraphSpec
from orchestrator.core.files.workspace import LARGEST_FILE, LARGEST_TREE, MOST_FILES, tree_of
from orchestrator.tools.gateways.registry import shipped_tools

CATEGORIES: Final = ("files", "sandbox")
CHUNK: Final = 64 * 1024
# Raised by the reader for archives that are broken, encrypted or compressed in an unsupported way.
BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError, OSError,
    ValueError,
)  # fmt: skip


def takes_files(spec: GraphSpec) -> bool:
    """Return whether a workflow names a tool that works on the files of its run."""
    return any(
        named_by(spec.tools, name)
        for name, tool in shipped_tools().items()
        if tool.spec.category in CATEGORIES and tool.spec.capability != "script"
    )


def files_in(sent: Iterable[UploadedFile[Any]], folder: str) -> dict[str, bytes]:
    """Return the uploaded files by path, below `folder`.

    A single file is placed by its name, the files of an archive by their paths in the archive. Nothing larger
    than the limits is read.

    Raises: PathRefused, WorkspaceRefused.
    """
    found: dict[str, bytes] = {}
    before = f"{folder.strip().strip('/')}/" if folder.strip().strip("/") else ""
    for one in sent:
        name = str(one.name or "")
        held = _unpack_archive(one) if name.lower().endswith(".zip") else ((name, _read_upload(one)),)
        for path, content in held:
            _add_file(found, before + path, content)
    # Checked here, so that the form can show the fault.
    tree_of(found)
    return found


def _add_file(found: dict[str, bytes], path: str, content: bytes) -> None:
    if path in found:
        raise WorkspaceRefused(detail=f"{path} is given twice")
    found[path] = content
    if len(found) > MOST_FILES:
        raise WorkspaceRefused(detail=f"it would hold more than {MOST_FILES} files")
    if sum(map(len, found.values())) > LARGEST_TREE:
        raise WorkspaceRefused(detail=f"it would hold more than {LARGEST_TREE} bytes")


def _read_upload(one: UploadedFile[Any]) -> bytes:
    if one.size is None or one.size > LARGEST_FILE:
        raise WorkspaceRefused(detail=f"{one.name} is larger than {LARGEST_FILE} bytes")
    content: bytes = one.read()
    return content


def _unpack_archive(one: UploadedFile[Any]) -> Iterable[tuple[str, bytes]]:
    """Yield the paths and contents of an archive's files. The sizes it declares are not trusted.

    Raises: WorkspaceRefused.
    """
    if one.size is None or one.size > LARGEST_TREE:
        raise WorkspaceRefused(detail=f"{one.name} is larger than {LARGEST_TREE} bytes")
    try:
        with zipfile.ZipFile(BytesIO(one.read())) as archive:
            for held in archive.infolist():
                if not held.is_dir():
                    yield held.filename, _read_archive_member(archive, held)
    except BROKEN:
        raise WorkspaceRefused(detail=f"{one.name} is no archive that can be read") from None


def _read_archive_member(archive: zipfile.ZipFile, held: zipfile.ZipInfo) -> bytes:
    """Read one file of an archive.

    Raises: WorkspaceRefused for a file that is too large or not a plain file, such as a link.
    """
    kind = (held.external_attr >> 16) & 0o170000
    if kind not in (0, 0o100000):
        raise WorkspaceRefused(detail=f"{held.filename} is no plain file")
    content = bytearray()
    with archive.open(held) as opened:
        while part := opened.read(CHUNK):
            content += part
            if len(content) > LARGEST_FILE:
                raise WorkspaceRefused(detail=f"{held.filename} is larger than {LARGEST_FILE} bytes")
    return bytes(content)
