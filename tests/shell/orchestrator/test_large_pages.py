"""A worker's memory is put into large pages where the kernel has them, and stays as it is where not."""

import os
import re
from pathlib import Path

import pytest

from orchestrator.runtime import large_pages
from orchestrator.runtime.large_pages import SIZE, LargePages, in_use, use_large_pages

PATIENCE_SECONDS = 60.0
ALLOWED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def mapping(start: int, size: int, *, rss: int, flags: str = "rw-p", name: str = "") -> list[str]:
    """What the kernel says of one mapping; sizes in kilobytes."""
    device = "fe:00 2608" if name.startswith("/") else "00:00 0"
    head = f"{start:x}-{start + size * 1024:x} {flags} 00000000 {device}"
    first = f"{head}                     {name}" if name else f"{head} "
    return [first, f"Size: {size:14} kB", "KernelPageSize:        4 kB", f"Rss: {rss:14} kB", "Pss:   4 kB"]


def test_only_whole_large_pages_of_a_mapping_are_asked_for() -> None:
    start = 5 * SIZE + 4_096

    assert list(in_use(mapping(start, 8_192, rss=8_192))) == [(6 * SIZE, 9 * SIZE)]
    assert list(in_use(mapping(start, 2_048, rss=2_048))) == []


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"name": "[heap]"}, True),
        ({"rss": 6_144}, True),
        ({"rss": 6_140}, False),
        ({"flags": "r--p"}, False),
        ({"flags": "rw-s"}, False),
        ({"name": "[stack]"}, False),
        ({"name": "/usr/lib/libpython3.so"}, False),
    ],
)
def test_memory_of_its_own_is_asked_for_that_is_mostly_in_use(told: dict[str, object], asked: bool) -> None:
    values: dict[str, object] = {"rss": 8_192} | told

    found = list(in_use(mapping(4 * SIZE, 8_192, **values)))  # type: ignore[arg-type]

    assert found == ([(4 * SIZE, 8 * SIZE)] if asked else [])


def test_each_mapping_is_looked_at_by_itself() -> None:
    lines = [
        *mapping(2 * SIZE, 2_048, rss=0),
        *mapping(4 * SIZE, 2_048, rss=2_048, name="/usr/lib/libpython3.so"),
        *mapping(6 * SIZE, 2_048, rss=2_048),
    ]

    assert list(in_use(lines)) == [(6 * SIZE, 7 * SIZE)]


def test_this_very_process_has_large_pages_then() -> None:
    if not ALLOWED.exists() or "[never]" in ALLOWED.read_text() or _older_than(6, 1):
        assert use_large_pages() == 0
        return
    held = [bytearray(b"x" * 1_000) for _ in range(20_000)]

    asked = use_large_pages()

    assert asked >= SIZE
    assert _in_large_pages() >= SIZE
    assert {bytes(one) for one in held} == {b"x" * 1_000}


def test_where_the_administrator_wants_none_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    setting = tmp_path / "enabled"
    setting.write_text("always madvise [never]\n")
    monkeypatch.setattr(large_pages, "_ALLOWED", setting)

    assert use_large_pages() == 0


def test_without_such_a_kernel_the_thread_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(large_pages, "_ALLOWED", tmp_path / "absent")
    asking = LargePages()

    asking.start()
    asking.join(PATIENCE_SECONDS)

    assert not asking.is_alive()


def test_a_worker_that_stops_stops_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_pages, "use_large_pages", lambda: SIZE)
    asking = LargePages()
    asking.start()

    asking.stop()
    asking.join(PATIENCE_SECONDS)

    assert not asking.is_alive()


def _older_than(*version: int) -> bool:
    """Whether the kernel cannot be asked for large pages at once."""
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) < version


def _in_large_pages() -> int:
    """Bytes of this process that the kernel says are in large pages."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:"))
