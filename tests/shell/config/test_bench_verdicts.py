"""What the measurements of pages and of followers judge, and that a missed bound ends them with status 1."""

import pytest

from bench import live, pages, thresholds


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> thresholds.Verdicts:
    """Verdicts of this test alone."""
    fresh = thresholds.Verdicts()
    monkeypatch.setattr(thresholds, "VERDICTS", fresh)
    return fresh


@pytest.mark.parametrize(
    ("delivered", "expected", "late", "missed"),
    [
        (200, 200, [20.0] * 99 + [900.0], 0),
        (199, 200, [20.0] * 100, 1),
        (0, 0, [20.0] * 100, 1),
        (200, 200, [20.0] * 90 + [160.0] * 10, 1),
        (0, 200, [], 2),
    ],
)
def test_followers_are_judged_by_what_they_miss_and_how_late_they_hear(
    verdicts: thresholds.Verdicts, delivered: int, expected: int, late: list[float], missed: int
) -> None:
    live.judged(delivered, expected, {"a page": late, "a program": [20.0] * 2})
    assert (len(verdicts.missed), verdicts.status) == (missed, min(missed, 1))
    assert not any("program" in what for what in verdicts.missed)


@pytest.mark.parametrize(
    ("p95", "elements", "missed"),
    [(200.0, 3_000, 0), (200.1, 10, 1), (300.1, 10, 2), (10.0, 3_001, 1), (301.0, 3_001, 3)],
)
def test_pages_are_judged_by_time_and_by_size(
    verdicts: thresholds.Verdicts, p95: float, elements: int, missed: int
) -> None:
    pages.judged({"overview": pages.Figures(10.0, 10), "list": pages.Figures(p95, elements)})
    assert (len(verdicts.missed), verdicts.status) == (missed, min(missed, 1))
    assert all("list" in what and "overview" not in what for what in verdicts.missed)
