"""Watching the processes of a sandbox from outside: how many there are, and what they hold in memory."""

import os
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
PROCESSES = Path("/proc")


def iter_process_tree(pid: int) -> Iterator[int]:
    """A process and all that come from it, as far as they can be seen now."""
    level = [pid]
    while level:
        one = level.pop()
        yield one
        try:
            threads = list((PROCESSES / str(one) / "task").iterdir())
        except OSError:
            continue
        for thread in threads:
            try:
                level.extend(map(int, (thread / "children").read_text().split()))
            except OSError:
                continue


def measure_process_tree(pid: int) -> tuple[int, int]:
    """The number of processes in a family, and the bytes that they hold."""
    number = held = 0
    for one in iter_process_tree(pid):
        number += 1
        try:
            held += int((PROCESSES / str(one) / "statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            continue
    return number, held


def first_to_go(pid: int) -> None:
    """Where memory runs out after all, the kernel takes this family before anything else."""
    try:
        (PROCESSES / str(pid) / "oom_score_adj").write_text("1000")
    except OSError:
        return
