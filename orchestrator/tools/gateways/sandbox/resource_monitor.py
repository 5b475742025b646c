"""Monitors the processes of a sandbox from outside: their number and their resident memory."""

import os
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
PROCESSES = Path("/proc")


def iter_process_tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants, as far as they are visible now."""
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
    """Return the number of processes in a process tree, and their resident memory in bytes."""
    number = held = 0
    for one in iter_process_tree(pid):
        number += 1
        try:
            held += int((PROCESSES / str(one) / "statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            continue
    return number, held


def first_to_go(pid: int) -> None:
    """Make the kernel kill this process tree first where memory runs out."""
    try:
        (PROCESSES / str(pid) / "oom_score_adj").write_text("1000")
    except OSError:
        return
