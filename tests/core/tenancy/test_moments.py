"""A moment from outside is one in UTC, or none."""

from datetime import UTC, datetime

import pytest

from tenancy.core.timestamps import in_utc, read_moment

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-01-01T12:00:00Z", "2026-01-02T11:59:00+23:59", "2026-01-01T12:00:01.000001+00:00:01.000001"],
)
def test_a_moment_is_read_in_utc_whatever_its_offset(text: str) -> None:
    found = read_moment(text)
    assert (found, found.tzinfo) == (NOON, UTC)


@pytest.mark.parametrize(
    "text",
    ["", "noon", "2026-01-01", "2026-01-01T12:00:00", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59-01:00"],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|format"):
        read_moment(text)


def test_a_moment_in_utc_stays_itself() -> None:
    assert in_utc(NOON) is NOON
