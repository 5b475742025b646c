"""A worker's memory is put into large pages where the kernel has them, and stays as it is where not."""

import os
import re
from pathlib import Path
from threading import Event

import pytest

from orchestrator.worker import huge_pages
from orchestrator.worker.huge_pages import SIZE, LargePages, can_use_huge_pages, in_use, use_large_pages

PATIENCE_SECONDS = 60.0


def mapping(start: int, size: int, *, rss: int, flags: str = "rw-p", name: str = "") -> list[bytes]:
    """What the kernel says of one mapping; sizes in kilobytes."""
    device = "fe:00 2608" if name.startswith("/") else "00:00 0"
    head = f"{start:x}-{start + size * 1024:x} {flags} 00000000 {device}"
    first = f"{head}                     {name}" if name else f"{head} "
    said = [first, f"Size: {size:14} kB", "KernelPageSize:        4 kB", f"Rss: {rss:14} kB", "Pss:   4 kB"]
    return [line.encode("latin-1") for line in said]


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The kernel's settings, to be written: large pages are there and may be had."""
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    (tmp_path / "hpage_pmd_size").write_text(f"{SIZE}\n")
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    return tmp_path


def test_only_whole_large_pages_of_a_mapping_are_asked_for() -> None:
    start = 5 * SIZE + 4_096

    assert list(in_use(mapping(start, 8_192, rss=8_192))) == [(6 * SIZE, 9 * SIZE)]
    assert list(in_use(mapping(start, 2_048, rss=2_048))) == []


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"name": "[heap]"}, True),
        ({"name": "[anon: glibc: malloc arena]"}, True),
        ({"rss": 6_144}, True),
        ({"rss": 6_140}, False),
        ({"flags": "r--p"}, False),
        ({"flags": "rw-s"}, False),
        ({"name": "[stack]"}, False),
        ({"name": "/usr/lib/libpython3.so"}, False),
        ({"name": "/srv/\xf6.bin"}, False),
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


def test_most_of_this_very_process_is_in_large_pages_then() -> None:
    if not can_use_huge_pages() or _older_than(6, 1):
        pytest.skip("this kernel has no large pages at once")
    held = [bytearray(b"x" * 1_000) for _ in range(20_000)]
    wanted = _in_use()

    had = use_large_pages()

    assert wanted >= 10 * SIZE
    assert had is not None
    assert had >= wanted // 2
    assert {bytes(one) for one in held} == {b"x" * 1_000}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("enabled", "always madvise [never]"),
        ("hugepages-2048kB/enabled", "always inherit madvise [never]"),
        ("hpage_pmd_size", str(16 * SIZE)),
        ("hpage_pmd_size", "much"),
    ],
)
def test_what_the_kernel_or_its_administrator_does_not_allow_is_not_asked_for(
    settings: Path, name: str, says: str
) -> None:
    assert can_use_huge_pages()
    (settings / name).parent.mkdir(exist_ok=True)
    (settings / name).write_text(f"{says}\n")

    assert not can_use_huge_pages()
    assert use_large_pages() is None


def test_without_such_a_kernel_the_thread_ends_by_itself(settings: Path) -> None:
    (settings / "enabled").unlink()
    asking = LargePages()

    asking.start()
    asking.join(PATIENCE_SECONDS)

    assert not asking.is_alive()


@pytest.mark.usefixtures("settings")
def test_it_is_asked_again_and_again_until_the_worker_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    thrice = Event()

    def ask() -> int:
        asked.append(len(asked))
        if len(asked) == 3:
            thrice.set()
        return 0

    monkeypatch.setattr(huge_pages, "use_large_pages", ask)
    monkeypatch.setattr(huge_pages, "EVERY_SECONDS", 0.001)
    asking = LargePages()
    asking.start()
    assert thrice.wait(PATIENCE_SECONDS)

    asking.stop()
    asking.join(PATIENCE_SECONDS)

    assert not asking.is_alive()


def _older_than(*version: int) -> bool:
    """Whether the kernel cannot be asked for large pages at once."""
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) < version


def _in_use() -> int:
    """Bytes of this process that are to be in large pages."""
    lines = Path("/proc/self/smaps").read_bytes().split(b"\n")
    return sum(end - start for start, end in in_use(lines))
