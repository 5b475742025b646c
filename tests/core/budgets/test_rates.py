"""Which limit of admission is reached, and when to come back (R-BUDGET-11)."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from budgets.core.errors import RateReached
from budgets.core.rates import NAMES, TIERS, Count, Rates, check_rate_limits, format_limit_name, of_tier
from tests.proves import proves

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_below_every_limit_one_more_comes_in() -> None:
    check_rate_limits(Rates(queue_depth=2, submissions_per_minute=2), {"queue_depth": Count(number=1)}, NOON)


@proves("R-BUDGET-11", part="which limit, and when to come back")
def test_a_minutes_limit_opens_when_its_oldest_is_a_minute_old() -> None:
    counts = {"submissions_per_minute": Count(number=2, since=NOON - timedelta(seconds=20))}
    with pytest.raises(RateReached) as reached:
        check_rate_limits(Rates(submissions_per_minute=2), counts, NOON)
    assert reached.value.data["retry_after"] == 40
    assert reached.value.data["which"] == "submissions_per_minute"
    assert "2 tasks a minute of the tenant" in str(reached.value)


def test_of_several_limits_the_one_that_opens_last_is_named() -> None:
    counts = {
        "queue_depth": Count(number=5),
        "key_submissions_per_minute": Count(number=1, since=NOON - timedelta(seconds=1)),
    }
    with pytest.raises(RateReached) as reached:
        check_rate_limits(Rates(queue_depth=5, key_submissions_per_minute=1), counts, NOON)
    assert reached.value.data["which"] == "key_submissions_per_minute"


def test_no_limit_is_none() -> None:
    check_rate_limits(Rates(), {name: Count(number=10**6, since=NOON) for name in NAMES}, NOON)


def test_a_limit_of_nothing_is_not_one() -> None:
    with pytest.raises(ValidationError):
        Rates(queue_depth=0)


def test_every_tier_limits_everything_and_each_limit_has_words() -> None:
    for tier in TIERS.values():
        assert all(limit is not None for _, limit in tier)
    assert of_tier("unheard of") == TIERS["standard"]
    assert format_limit_name("key_queue_depth") == "runs waiting for a worker of one key or person"
