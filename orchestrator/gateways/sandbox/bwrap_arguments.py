"""The command line of one sandbox: what is there, and nothing else is (bubblewrap)."""

import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator.gateways.sandbox.limits import Job, Limits

SYSTEM = Path("/usr")
DEVICES = ("null", "zero", "full", "random", "urandom")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8",  # noqa: S108 - the sandbox's own
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PYTHONNOUSERSITE": "1",
    "PYTHONPATH": "/work:/packages",
}  # fmt: skip
# Users that no account has: one each for the sandboxes of a root process, whose limits must not be shared.
UIDS = range(61_184, 65_500)
_next_uid = itertools.count()


def resolve_interpreter_path() -> str:
    """The Python that this process runs under, without its virtual environment."""
    return os.path.realpath(sys.executable)


def fresh_uid() -> int:
    """Who the work runs as: for root a user of its own, else (0) whoever this process is."""
    if os.geteuid() != 0:
        return 0
    return UIDS[(os.getpid() * 64 + next(_next_uid)) % len(UIDS)]


def build_namespace_arguments(uid: int) -> Iterator[str]:
    """Own processes, network, names, queues; and the way to be nobody in them."""
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--clearenv", "--hostname", "sandbox")
    if uid:
        # Root drops to its user inside; until then it has nothing but the right to.
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534")


def build_folder_arguments(*places: Path) -> Iterator[str]:
    """Folders that anybody may walk through: those made on the way to a bind only their owner may enter."""
    chain = (folder for place in places for folder in (*reversed(place.parents), place))
    for folder in dict.fromkeys(chain):
        if folder != Path("/"):
            yield from ("--perms", "0755", "--dir", str(folder))


def build_system_arguments() -> Iterator[str]:
    """The interpreter and the libraries it stands on, read-only; a few devices that hold nothing."""
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
    """Where it may write: two folders in memory, of a size. The root itself may not be written to."""
    for place in ("/work", "/tmp"):  # noqa: S108 - the sandbox's own
        yield from ("--perms", "1777", "--size", str(limits.space_bytes), "--tmpfs", place)
    yield from ("--perms", "1777", "--size", str(1024 * 1024), "--tmpfs", "/code")
    yield from ("--remount-ro", "/", "--chdir", "/work")


def build_library_arguments(names: tuple[str, ...]) -> Iterator[str]:
    """Packages of this process's own environment, each bound where the work can import it."""
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
    """Single programs of this machine."""
    for program in programs:
        yield from ("--ro-bind", program, f"/packages/{Path(program).name}")


def can_import(name: str) -> bool:
    """Whether there is such a package to give to a sandbox."""
    return importlib.util.find_spec(name) is not None


def build_bwrap_command(bwrap: str, job: Job, uid: int, seccomp: int, program: list[str]) -> list[str]:
    """The whole command; `seccomp` is the descriptor of the filter, `program` what runs inside."""
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
