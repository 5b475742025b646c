"""A worker's memory in huge pages.

The processor caches the addresses of few 4 KB pages, and a worker's objects are spread over its whole heap.
Linux moves memory that requests it into 2 MB pages, within minutes or, since 6.1, at once; a commit then
takes a thirtieth less processor time. Nothing changes if the kernel has no such pages or its administrator
disabled them.
"""

import ctypes
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

SIZE: Final = 2 << 20
# The heap grows in a worker's first minutes; a repeated request costs little.
EVERY_SECONDS: Final = 60.0
# A sparsely used huge page would only cost memory: the stacks of threads.
FULL: Final = 0.75
_WANTED, _NOW = 14, 25
_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
_MEMORY = Path("/proc/self/smaps")
_IN_ALL = Path("/proc/self/smaps_rollup")
# Bytes, since the name of a mapped file may be anything.
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) rw.p [0-9a-f]+ 00:00 0 +(\[heap\]|\[anon:.*\])?$")
_RESIDENT = re.compile(rb"Rss: +(\d+) kB$")
_LARGE = re.compile(rb"^AnonHugePages: +(\d+) kB$", re.MULTILINE)

log = structlog.get_logger(__name__)


class LargePages(threading.Thread):
    """Requests huge pages for the memory of this process at once and then every minute, if allowed."""

    def __init__(self) -> None:
        super().__init__(name="large pages", daemon=True)
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Repeat the request until stopped, or until huge pages are unavailable."""
        while (large := use_large_pages()) is not None:
            log.debug("worker.large_pages", bytes=large)
            if self._stop_asked.wait(EVERY_SECONDS):
                return

    def stop(self) -> None:
        self._stop_asked.set()


def can_use_huge_pages() -> bool:
    """Return whether the kernel has huge pages of 2 MB and its administrator lets processes use them."""
    try:
        size, said = int((_SETTINGS / "hpage_pmd_size").read_text()), (_SETTINGS / "enabled").read_text()
    except (OSError, ValueError):
        return False
    with suppress(OSError):  # each size has a setting of its own since 6.8
        said += (_SETTINGS / "hugepages-2048kB" / "enabled").read_text()
    return size == SIZE and "[never]" not in said


def use_large_pages() -> int | None:
    """Request huge pages for the used memory of this process and return the number of bytes now in them.

    Memory that cannot be moved at the moment stays as it is. The result is None if huge pages are
    unavailable.
    """
    if not can_use_huge_pages():
        return None
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    try:
        for start, end in in_use(_MEMORY.read_bytes().split(b"\n")):
            advise(start, end - start, _WANTED)
            # Each page separately: in a range, the rest would be skipped after the first page that cannot be
            # moved.
            for page in range(start, end, SIZE):
                advise(page, SIZE, _NOW)
        found = _LARGE.search(_IN_ALL.read_bytes())
    except OSError:
        return None
    return int(found[1]) * 1024 if found else 0


def in_use(lines: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of mostly used private memory in a `smaps` listing, in whole huge pages."""
    start = end = 0
    for line in lines:
        if found := _MAPPING.match(line):
            start, end = int(found[1], 16), int(found[2], 16)
        elif found := _RESIDENT.match(line):
            first, last = -(-start // SIZE) * SIZE, end // SIZE * SIZE
            if first < last and int(found[1]) * 1024 >= FULL * (end - start):
                yield first, last
            start = end = 0
