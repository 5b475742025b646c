"""The bubblewrap command line of one sandbox: only what is listed here exists inside."""

import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator.tools.gateways.sandbox.limits import Job, Limits

SYSTEM = Path("/usr")
DEVICES = ("null", "zero", "full", "random", "urandom")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8",  # noqa: S108 - the sandbox's own
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PYTHONNOUSERSITE": "1",
    "PYTHONPATH": "/work:/packages",
}  # fmt: skip
# Unused user ids: each sandbox of a root process gets its own, so that limits are not shared.
UIDS = range(61_184, 65_500)
_next_uid = itertools.count()


def resolve_interpreter_path() -> str:
    """Return the real path of the Python that this process runs under, without its virtual environment."""
    return os.path.realpath(sys.executable)


def fresh_uid() -> int:
    """Return the user id that the work runs as: for root an unused one, else 0 for the current user."""
    if os.geteuid() != 0:
        return 0
    return UIDS[(os.getpid() * 64 + next(_next_uid)) % len(UIDS)]


def build_namespace_arguments(uid: int) -> Iterator[str]:
    """Give the sandbox its own processes, network, host name and queues, and an unprivileged user."""
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--clearenv", "--hostname", "sandbox")
    if uid:
        # Root drops to its user inside; until then it has only the capabilities to do so.
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534")


def build_folder_arguments(*places: Path) -> Iterator[str]:
    """Create folders that every user may enter.

    bwrap makes the parents of a bind accessible to their owner only.
    """
    chain = (folder for place in places for folder in (*reversed(place.parents), place))
    for folder in dict.fromkeys(chain):
        if folder != Path("/"):
            yield from ("--perms", "0755", "--dir", str(folder))


def build_system_arguments() -> Iterator[str]:
    """Bind the interpreter and the system libraries read-only, with a few harmless devices."""
    prefixes = dict.fromkeys((SYSTEM, Path(sys.base_prefix)))
    yield from build_folder_arguments(*prefixes, SYSTEM / "share", Path("/dev"), Path("/packages"))
    for place in (prefix / part for prefix in prefixes for part in ("bin", "lib", "lib64")):
        yield from ("--ro-bind-try", str(place), str(place))
    yield from ("--ro-bind-try", "/usr/share/zoneinfo", "/usr/share/zoneinfo")
    for name in ("bin", "lib", "lib64"):
        old = Path("/") / name
        if old.is_symlink():
            yield from ("--symlink", f"usr/{name}", str(old))
        else:
            yield from ("--ro-bind-try", str(old), str(old))
    for name in DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    yield from ("--symlink", "/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own


def build_writable_arguments(limits: Limits) -> Iterator[str]:
    """Mount the writable folders, in memory and of limited size, and make the root read-only."""
    for place in ("/work", "/tmp"):  # noqa: S108 - the sandbox's own
        yield from ("--perms", "1777", "--size", str(limits.space_bytes), "--tmpfs", place)
    yield from ("--perms", "1777", "--size", str(1024 * 1024), "--tmpfs", "/code")
    yield from ("--remount-ro", "/", "--chdir", "/work")


def build_library_arguments(names: tuple[str, ...]) -> Iterator[str]:
    """Bind packages of this process's own environment where the work can import them."""
    for name in names:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            continue
        place = Path(found.origin)
        if found.submodule_search_locations is not None:
            yield from ("--ro-bind", str(place.parent), f"/packages/{name}")
        else:
            yield from ("--ro-bind", str(place), f"/packages/{place.name}")


def build_program_arguments(programs: tuple[str, ...]) -> Iterator[str]:
    """Bind single programs of this machine."""
    for program in programs:
        yield from ("--ro-bind", program, f"/packages/{Path(program).name}")


def can_import(name: str) -> bool:
    """Return whether the package is installed here and can be bound into a sandbox."""
    return importlib.util.find_spec(name) is not None


def build_bwrap_command(bwrap: str, job: Job, uid: int, seccomp: int, program: list[str]) -> list[str]:
    """Build the whole command; `seccomp` is the filter's file descriptor, `program` is run inside."""
    return [
        bwrap,
        *build_namespace_arguments(uid),
        *build_system_arguments(),
        *build_library_arguments(job.packages),
        *build_program_arguments(job.programs),
        *build_writable_arguments(job.limits),
        "--seccomp",
        str(seccomp),
        "--",
        *program,
    ]
