"""Identifiers: version 7, in order within a process."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
import time_machine

from tenancy.db.ids import fresh_id


def test_an_id_is_a_uuid_of_version_seven() -> None:
    made = fresh_id()
    assert (made.version, made.variant) == (7, "specified in RFC 4122")


def test_an_id_begins_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # The counter only goes on; without this every later id of the process would be of 2031.
    monkeypatch.setattr("tenancy.db.ids._last", 0)
    with time_machine.travel(datetime(2031, 5, 1, tzinfo=UTC), tick=False):
        made = fresh_id()
    assert made.int >> 80 == datetime(2031, 5, 1, tzinfo=UTC).timestamp() * 1000


def test_ids_of_one_process_are_in_order_though_the_clock_goes_back() -> None:
    first = fresh_id()
    with time_machine.travel(datetime(2001, 1, 1, tzinfo=UTC), tick=False):
        assert fresh_id() > first


def test_threads_never_share_an_id() -> None:
    with ThreadPoolExecutor(8) as threads:
        some = list(threads.map(lambda _: [fresh_id() for _ in range(2_500)], range(8)))
    assert len({one.int >> 64 for made in some for one in made}) == 20_000
