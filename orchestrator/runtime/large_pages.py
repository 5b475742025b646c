"""A worker's memory in large pages: much of what a commit costs is waiting for memory.

A commit touches some thousands of small objects all over the heap, and of pages of four kilobytes a processor
knows the places of too few. Linux puts memory that asks for it into pages of two megabytes, by itself within
minutes or, since 6.1, at once; a worker then takes a thirtieth less of the processor. Where the kernel has no
such pages, or its administrator wants none, everything stays as it is.
"""

import ctypes
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import structlog

SIZE: Final = 2 << 20
# The heap grows in a worker's first minutes; what is asked for twice costs a look.
EVERY_SECONDS: Final = 60.0
# A large page of which little is used would be more memory and nothing else: the stacks of threads.
FULL: Final = 0.75
_WANTED, _NOW = 14, 25
_MEMORY = Path("/proc/self/smaps")
_ALLOWED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw.p [0-9a-f]+ 00:00 0 +(\[heap\])?$")
_IN_USE = re.compile(r"Rss: +(\d+) kB$")

log = structlog.get_logger(__name__)


class LargePages(threading.Thread):
    """Asks for the memory of this process at once and then every minute."""

    def __init__(self) -> None:
        super().__init__(name="large pages", daemon=True)
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Ask until stopped, or until it is plain that nobody answers."""
        while asked := use_large_pages():
            log.debug("worker.large_pages", bytes=asked)
            if self._stop_asked.wait(EVERY_SECONDS):
                return

    def stop(self) -> None:
        """Stop asking."""
        self._stop_asked.set()


def use_large_pages() -> int:
    """Have the memory of this process that is in use put into large pages now; so many bytes of it are in
    such pages then. 0 where the kernel has none or may not use them."""
    try:
        if "[never]" in _ALLOWED.read_text():
            return 0
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return sum(
        end - start
        for start, end in in_use(lines)
        if advise(start, end - start, _WANTED) == 0 and advise(start, end - start, _NOW) == 0
    )


def in_use(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Of the lines of a `smaps` the (start, end) of memory of the process's own that is mostly in use, in
    whole large pages."""
    start = end = 0
    for line in lines:
        if found := _MAPPING.match(line):
            start, end = int(found[1], 16), int(found[2], 16)
        elif found := _IN_USE.match(line):
            first, last = -(-start // SIZE) * SIZE, end // SIZE * SIZE
            if first < last and int(found[1]) * 1024 >= FULL * (end - start):
                yield first, last
            start = end = 0
