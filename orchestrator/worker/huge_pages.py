"""A worker's memory in large pages.

Of pages of four kilobytes a processor knows the places of few, and a worker's objects lie all over its heap.
Linux puts memory that asks for it into pages of two megabytes, by itself within minutes or, since 6.1, at
once; a commit then takes a thirtieth less of the processor. Where the kernel has no such pages, or its
administrator wants none, everything stays as it is.
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
# The heap grows in a worker's first minutes; what is asked for twice costs a look.
EVERY_SECONDS: Final = 60.0
# A large page of which little is used would be more memory and nothing else: the stacks of threads.
FULL: Final = 0.75
_WANTED, _NOW = 14, 25
_SETTINGS = Path("/sys/kernel/mm/transparent_hugepage")
_MEMORY = Path("/proc/self/smaps")
_IN_ALL = Path("/proc/self/smaps_rollup")
# Bytes, for a mapped file's name may be anything.
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) rw.p [0-9a-f]+ 00:00 0 +(\[heap\]|\[anon:.*\])?$")
_RESIDENT = re.compile(rb"Rss: +(\d+) kB$")
_LARGE = re.compile(rb"^AnonHugePages: +(\d+) kB$", re.MULTILINE)

log = structlog.get_logger(__name__)


class LargePages(threading.Thread):
    """Asks for the memory of this process at once and then every minute, where that is allowed."""

    def __init__(self) -> None:
        super().__init__(name="large pages", daemon=True)
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Ask until stopped."""
        while (large := use_large_pages()) is not None:
            log.debug("worker.large_pages", bytes=large)
            if self._stop_asked.wait(EVERY_SECONDS):
                return

    def stop(self) -> None:
        """Stop asking."""
        self._stop_asked.set()


def can_use_huge_pages() -> bool:
    """Whether the kernel has large pages of this size and its administrator lets processes have them."""
    try:
        size, said = int((_SETTINGS / "hpage_pmd_size").read_text()), (_SETTINGS / "enabled").read_text()
    except (OSError, ValueError):
        return False
    with suppress(OSError):  # each size has a setting of its own since 6.8
        said += (_SETTINGS / "hugepages-2048kB" / "enabled").read_text()
    return size == SIZE and "[never]" not in said


def use_large_pages() -> int | None:
    """Have the memory of this process that is in use put into large pages; so many bytes of it then are.

    What cannot be moved at the moment stays as it is. None where there is nobody to ask.
    """
    if not can_use_huge_pages():
        return None
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    try:
        for start, end in in_use(_MEMORY.read_bytes().split(b"\n")):
            advise(start, end - start, _WANTED)
            # Each by itself: of a range the rest would be left out after the first that cannot be moved.
            for page in range(start, end, SIZE):
                advise(page, SIZE, _NOW)
        found = _LARGE.search(_IN_ALL.read_bytes())
    except OSError:
        return None
    return int(found[1]) * 1024 if found else 0


def in_use(lines: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Of the lines of a `smaps` the (start, end) of memory of the process's own that is mostly in use, in
    whole large pages."""
    start = end = 0
    for line in lines:
        if found := _MAPPING.match(line):
            start, end = int(found[1], 16), int(found[2], 16)
        elif found := _RESIDENT.match(line):
            first, last = -(-start // SIZE) * SIZE, end // SIZE * SIZE
            if first < last and int(found[1]) * 1024 >= FULL * (end - start):
                yield first, last
            start = end = 0
