"""The first program in the sandbox: writes the files, sets the limits, runs the work and reports.

It is started from its source, under any available Python, and imports no code of ours. Its one argument is
a JSON object; a tar of the files arrives on its standard input, the report goes to the file descriptor
`report`.
"""

import base64
import json
import os
import resource
import signal
import sys
import tarfile
import time

PAUSE = 0.02
# The usual maximum of a process; where a limit was lowered, descriptors above it may still be open.
DESCRIPTORS = 1 << 20
LARGEST_RESULT = 4 * 1024 * 1024


def drop_privileges(uid: int) -> None:
    """Switch to a user that owns nothing outside."""
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.umask(0o022)


def lay_out() -> None:
    """Write the files from the standard input, each new, and replace the standard input by /dev/null."""
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as files:
        for member in files:
            content = files.extractfile(member)
            path = "/" + member.name
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            with open(path, "xb") as file:  # noqa: PTH123
                file.write(content.read() if content is not None else b"")
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)


def spawn_workload(asked: dict) -> int:  # type: ignore[type-arg]
    """Start the work under its limits, with only its three streams open, and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        close_all()
        os.chdir("/work")
        for name, bound in asked["limits"].items():
            resource.setrlimit(getattr(resource, name), (bound, bound))
        os.execve(asked["argv"][0], asked["argv"], asked["environment"])  # noqa: S606
    except Exception as error:  # noqa: BLE001 - whatever it is, the work cannot begin
        os.write(2, f"the work could not begin: {error!r}".encode())
    finally:
        os._exit(127)


def close_all() -> None:
    """Close every file descriptor except the three streams."""
    os.closerange(3, max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], DESCRIPTORS))


def count_files() -> int:
    """Count the files in the writable folders."""
    return sum(found.f_files - found.f_ffree for found in map(os.statvfs, ("/work", "/tmp")))  # noqa: S108


def wait_for(pid: int, most: int) -> tuple[str, int]:
    """Wait for the work and return how it ended with its exit status.

    Work that has created too many files is reported as ended by its files; the caller kills it.
    """
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return "ended", os.waitstatus_to_exitcode(status)
        if count_files() > most:
            return "files", -9
        time.sleep(PAUSE)


def kill_leftover_processes() -> None:
    """Kill every process that the work left behind."""
    for _ in range(500):
        try:
            os.kill(-1, 9)
            # Reap zombies, which would otherwise still count as running.
            os.waitpid(-1, os.WNOHANG)
        except (ProcessLookupError, ChildProcessError):
            if not has_leftover_processes():
                return
        time.sleep(0.01)


def has_leftover_processes() -> bool:
    """Return whether another process still exists."""
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        return False
    return True


def read_result(path: str) -> "str | None":
    """Return the result file in base64; None if it is missing or too large."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(LARGEST_RESULT + 1)
    except OSError:
        return None
    return base64.b64encode(content).decode() if len(content) <= LARGEST_RESULT else None


def main() -> None:
    """Run the job and write its report."""
    asked = json.loads(sys.argv[1])
    # The outside monitor may be gone: when this program ends, the whole sandbox ends.
    signal.alarm(asked["seconds"])
    drop_privileges(asked["uid"])
    lay_out()
    before = count_files()
    why, status = wait_for(spawn_workload(asked), before + asked["files"])
    kill_leftover_processes()
    told = {"why": why, "status": status, "result": read_result(asked["result"]) if asked["result"] else None}
    with open(asked["report"], "wb") as report:  # noqa: PTH123
        report.write(json.dumps(told).encode())


if __name__ == "__main__":
    main()
