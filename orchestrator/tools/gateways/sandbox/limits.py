"""The limits of code in a sandbox, the job to run, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Why = Literal["ended", "timeout", "memory", "output", "processes", "files", "crashed"]
"""How it came to its end: by itself, or at which limit. `crashed`: nothing is known but that it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one job, in bytes, seconds, and numbers of processes and files.

    `cpu_seconds` and `file_bytes` hold for each process and file, `memory_bytes` for each process and for
    all together. A process that reserves more than it uses may have `address_bytes` of address space
    instead (0: the same as `memory_bytes`). `space_bytes` is the size of the work folder; temporary files
    have the same size again.
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
    """A job: `argv` is run in the folder /work.

    `files` (path from the root to content) are written before. `python` as the first argument is replaced
    by the interpreter. `result` names a file that is returned at the end. `packages` of this process's own
    environment, and `programs`, are made available in /packages.
    """

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    limits: Limits = Limits()
    environment: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of a job.

    `status` is the exit status, negative for a signal; None where the end was not observed. `cut`: the job
    wrote more output than is kept.
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
        """True if the job ended by itself, with exit status 0."""
        return self.why == "ended" and self.status == 0
