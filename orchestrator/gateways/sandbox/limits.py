"""What code in a sandbox may use, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Why = Literal["ended", "timeout", "memory", "output", "processes", "files", "crashed"]
"""How it came to its end: by itself, or at which limit. `crashed`: nothing is known but that it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one piece of work. Bytes, seconds, and numbers of processes and files.

    `cpu_seconds` and `file_bytes` hold for each process and file, `memory_bytes` for each process and for all
    together; a process that reserves more than it uses may have `address_bytes` of addresses instead (0: as
    `memory_bytes`). `space_bytes` is the room of the work folder, and once more of that for temporary files.
    """

    seconds: float = 10.0
    cpu_seconds: int = 10
    memory_bytes: int = 512 * 1024 * 1024
    address_bytes: int = 0
    processes: int = 16
    open_files: int = 128
    files: int = 2_000
    file_bytes: int = 16 * 1024 * 1024
    space_bytes: int = 64 * 1024 * 1024
    output_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to run: `argv` in the folder /work, with `files` (path from the root to content) laid out before.

    The interpreter stands for `python` as the first word. `result` names a file that is handed out at the
    end. `packages` of this process's own environment are lent to it, and `programs`, found in /packages.
    """

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    limits: Limits = Limits()
    environment: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What came of it. `status` is the exit status, negative for a signal; None where nobody saw the end.

    `cut`: it said more than is kept.
    """

    why: Why
    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    cut: bool = False
    result: bytes | None = None

    @property
    def fine(self) -> bool:
        """Whether it came to its own end without a fault."""
        return self.why == "ended" and self.status == 0
