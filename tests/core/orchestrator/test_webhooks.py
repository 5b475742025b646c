"""When a delivery is tried again, and what an answer means (R-API-6)."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.notifications.delivery_policy import (
    LONGEST_WISH,
    PATIENCE,
    TRIES,
    WAITS,
    admit_endpoint,
    verdict_of,
    wait_after,
)
from orchestrator.core.tools.egress_policy import EgressPolicy, target_of
from tests.proves import proves

HOUR = timedelta(hours=1)


@proves("R-API-6", part="backoff")
@given(st.uuids())
def test_each_wait_is_longer_than_the_one_before_and_the_last_try_is_the_last(delivery: UUID) -> None:
    waits = [wait_after(tries, delivery) for tries in range(1, TRIES + 1)]
    assert waits.pop() is None
    assert all(wait is not None for wait in waits)
    known = [wait for wait in waits if wait is not None]
    assert known == sorted(known)
    assert all(least <= wait < least * 1.1 for least, wait in zip(WAITS, known, strict=True))
    assert sum(WAITS, timedelta()) > PATIENCE


def test_deliveries_that_failed_together_come_back_apart() -> None:
    waits = {wait_after(3, UUID(int=number)) for number in range(100)}
    assert len(waits) == 100


@pytest.mark.parametrize(
    ("wish", "wait"), [(HOUR, HOUR), (timedelta(seconds=1), WAITS[0]), (99_999 * HOUR, LONGEST_WISH)]
)
def test_an_endpoints_wish_is_kept_within_a_day(wish: timedelta, wait: timedelta) -> None:
    assert wait_after(1, UUID(int=0), wish) == wait


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(200, "delivered"), (204, "delivered"), (299, "delivered"), (302, "failed"), (400, "failed"),
     (410, "gone"), (500, "failed"), (None, "failed")],
)  # fmt: skip
def test_only_what_was_taken_counts_as_delivered(status: int | None, verdict: str) -> None:
    assert verdict_of(status) == verdict


@proves("W3", part="without TLS only where an admin says so")
def test_an_endpoint_without_tls_is_one_an_admin_has_named() -> None:
    place = EgressPolicy(origins=(), private=("hooks.internal:80",))
    admit_endpoint(target_of("https://hooks.example/in"), place)
    admit_endpoint(target_of("http://hooks.internal/in"), place)
    with pytest.raises(EgressRefused, match="https"):
        admit_endpoint(target_of("http://hooks.example/in"), place)
