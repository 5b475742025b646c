"""Child processes that serve the development stack and end with their parent."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pwd
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

_PR_SET_PDEATHSIG = 1
SOCKET_PATH_BYTES = 107
# Arguments after the interpreter: migrate a database as its owner.
MIGRATE = ("manage.py", "migrate", "--database", "owner", "--no-input", "--skip-checks")


class Account(BaseModel):
    """The account that a server runs as: `nobody` if started by root, else the user's own."""

    model_config = ConfigDict(frozen=True)

    uid: int
    gid: int
    dropped: bool

    @classmethod
    def for_servers(cls) -> Account:
        """Return the account for PostgreSQL and Valkey.

        PostgreSQL refuses to run as root, and no user is created.
        """
        if os.geteuid() != 0:
            return cls(uid=os.geteuid(), gid=os.getegid(), dropped=False)
        nobody = pwd.getpwnam("nobody")
        return cls(uid=nobody.pw_uid, gid=nobody.pw_gid, dropped=True)

    @property
    def popen(self) -> dict[str, Any]:
        """The keyword arguments of `subprocess` that change to this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.dropped else {}

    def own_path(self, path: Path) -> None:
        """Give a file or folder to this account."""
        if self.dropped:
            os.chown(path, self.uid, self.gid)


class Command(BaseModel):
    """A child to start: its arguments, environment, account, and the signals that end it."""

    model_config = ConfigDict(frozen=True)

    argv: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    account: Account | None = None
    stop: signal.Signals = signal.SIGTERM
    patience: float = 15.0

    def popen(self, *, with_parent: bool = True) -> dict[str, Any]:
        """Return keyword arguments of `subprocess`; `with_parent` ends the child when this process dies.

        Each child leads its own session, so that Ctrl-C reaches only the supervisor, which ends the children
        in order.
        """
        kwargs: dict[str, Any] = {"env": self.environment, "cwd": self.folder, "start_new_session": True}
        if self.account:
            kwargs |= self.account.popen
        if with_parent and sys.platform == "linux":
            kwargs["preexec_fn"] = _die_with(os.getpid(), self.stop)
        return kwargs


def _die_with(parent: int, how: signal.Signals) -> Callable[[], None]:
    libc = ctypes.CDLL(None, use_errno=True)

    def arrange() -> None:
        # Runs in the child after the change of account, which would clear the setting.
        libc.prctl(_PR_SET_PDEATHSIG, int(how), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return arrange


def open_to_others(path: Path) -> bool:
    """Return whether any account can reach and read `path`.

    Each folder above needs x for others; `path` itself needs r, and a folder also x.
    """
    resolved = path.resolve()
    if not all(parent.stat().st_mode & stat.S_IXOTH for parent in resolved.parents):
        return False
    needed = stat.S_IROTH | (stat.S_IXOTH if resolved.is_dir() else 0)
    return resolved.stat().st_mode & needed == needed


def make_folder(path: Path, mode: int) -> None:
    """Create a folder with exactly this mode, whatever the umask. An existing folder keeps its mode."""
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)


def hash_folder_path(path: Path) -> str:
    """Return ten hexadecimal characters that identify a folder in names that must stay short."""
    return hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:10]


def socket_folder(owner: Path, account: Account) -> Path:
    """Return a short private folder for the sockets of the servers that keep their data in `owner`.

    A socket's path may have 107 bytes, a checkout's path more.

    Raises: PermissionError if the folder is not a private folder of this account.
    """
    base = Path(tempfile.gettempdir())
    if len(str(base)) > 60 or not open_to_others(base):
        base = Path("/tmp")  # noqa: S108 - checked below for its owner and mode
    folder = base / f"interlock-{account.uid}-{hash_folder_path(owner)}"
    try:
        folder.mkdir(mode=0o700)
        account.own_path(folder)
    except FileExistsError:
        pass
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or found.st_mode & 0o077:
        message = f"{folder} is not a private folder of uid {account.uid}; remove it and start again."
        raise PermissionError(message)
    return folder


def remove_socket_folder(folder: Path) -> None:
    """Remove a socket folder once it is empty; the next start creates it again."""
    with suppress(OSError):
        folder.rmdir()


def is_process_alive(pid: int) -> bool:
    """Return whether a process with this id exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def end_stale(pid_file: Path, mark: str, how: signal.Signals, patience: float = 15.0) -> bool:
    """End the server that an earlier, killed supervisor left behind, and remove its pid file.

    `mark` must occur in the process's command line, since the id may have been reused by another process.
    Returns whether a process was ended.

    Raises: TimeoutError if the process does not end.
    """
    if (pid := read_pid(pid_file)) is None:
        return False
    try:
        ours = mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        ours = False
    if ours:
        os.kill(pid, how)
        # A process held by SIGSTOP would not receive the signal.
        os.kill(pid, signal.SIGCONT)
        wait_for(
            lambda: not is_process_alive(pid),
            patience,
            f"process {pid}, left by an earlier start, does not end",
        )
    reap_process(pid)
    pid_file.unlink(missing_ok=True)
    return ours


def read_pid(pid_file: Path) -> int | None:
    """Return the process id in a file's first line, or None if there is none."""
    try:
        return int(pid_file.read_text().split()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def reap_process(pid: int) -> None:
    """Collect a dead process's status, so that its id is free, if the process is a child of this one.

    A supervisor that is the first process of a container inherits every orphan.
    """
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def wait_for(condition: Callable[[], bool], patience: float, complaint: str) -> None:
    """Poll `condition` every 20 ms for `patience` seconds.

    Raises: TimeoutError with `complaint`.
    """
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(complaint)
        time.sleep(0.02)
