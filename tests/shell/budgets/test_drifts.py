"""A figure that drifts is flagged, and told once for each cause (R-BUDGET-14)."""

from datetime import timedelta

import pytest

from budgets.actions.usage_drift import flag_drifts_of
from budgets.core.statistics.distribution import LEAST
from budgets.models import DriftFlag, RunFigures
from budgets.queries.drifts import standing_drifts
from tenancy.core.event_kinds import FIGURES_DRIFT
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Notice
from tests.conftest import House
from tests.proves import proves


def ended(house: House, steps: int, runs: int = LEAST, *, workflow: str = "tool-loop", ago: int = 0) -> None:
    """So many runs ended one after the other, each of about so many steps, days ago."""
    with tenant_transaction(house.tenant.id):
        at = database_now() - timedelta(days=ago)
        RunFigures.objects.bulk_create(
            RunFigures(
                tenant_id=house.tenant.id, workflow=workflow, terminal_code="SUCCESS", steps=steps + one % 3,
                ended_at=at + timedelta(microseconds=one),
            )
            for one in range(runs)
        )  # fmt: skip


def told(house: House) -> list[tuple[str, str, str]]:
    """The figures that people were told of, with the medians."""
    with tenant_transaction(house.tenant.id):
        rows = Notice.objects.filter(kind=FIGURES_DRIFT).order_by("at", "id").values_list("data", flat=True)
        return [(data["metric"], data["before"], data["now"]) for data in rows]


def flags(house: House) -> list[tuple[str, bool, bool]]:
    """(figure, told, ended) of each flag, oldest first."""
    with tenant_transaction(house.tenant.id):
        rows = DriftFlag.objects.order_by("at").values_list("metric", "told", "ended_at")
        return [(metric, said, at is not None) for metric, said, at in rows]


@proves("R-BUDGET-14", part="drift is told once a cause")
def test_a_figure_that_moved_is_flagged_and_told_once(house: House) -> None:
    ended(house, 3)
    ended(house, 12)
    assert [flag_drifts_of(house.tenant.id) for _ in range(3)] == [1, 0, 0]
    assert (told(house), flags(house)) == ([("steps", "4", "13")], [("steps", True, False)])
    with tenant_transaction(house.tenant.id):
        assert [(one.workflow, one.runs) for one in standing_drifts()] == [("tool-loop", LEAST)]


def test_what_stays_as_it_was_is_not_flagged(house: House) -> None:
    ended(house, 5, 2 * LEAST)
    assert (flag_drifts_of(house.tenant.id), told(house)) == (0, [])


@proves("R-BUDGET-14", part="the same change is not told twice at the edge of chance")
def test_a_flag_ends_and_one_that_comes_back_soon_is_shown_and_not_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("budgets.queries.expenses.RUNS", LEAST)
    ended(house, 3)
    ended(house, 12)
    assert flag_drifts_of(house.tenant.id) == 1
    with tenant_transaction(house.tenant.id):
        DriftFlag.objects.update(ended_at=database_now())
    assert (flag_drifts_of(house.tenant.id), len(told(house))) == (1, 1)
    assert flags(house) == [("steps", True, True), ("steps", False, False)]
    ended(house, 12)
    assert (flag_drifts_of(house.tenant.id), flags(house)[-1]) == (0, ("steps", False, True))
    with tenant_transaction(house.tenant.id):
        assert standing_drifts() == []
    ended(house, 40)
    assert flag_drifts_of(house.tenant.id) == 1
    assert (flags(house)[-1], told(house)[-1]) == (("steps", True, False), ("steps", "13", "41"))


def test_what_still_drifts_when_it_is_news_again_is_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("budgets.queries.expenses.RUNS", LEAST)
    ended(house, 3)
    ended(house, 12)
    flag_drifts_of(house.tenant.id)
    with tenant_transaction(house.tenant.id):
        DriftFlag.objects.update(ended_at=database_now())
    assert (flag_drifts_of(house.tenant.id), len(told(house))) == (1, 1)
    ended(house, 40)
    assert [flag_drifts_of(house.tenant.id) for _ in range(2)] == [1, 0]
    assert flags(house)[1:] == [("steps", False, True), ("steps", True, False)]
    assert len(told(house)) == 2


def test_a_workflow_that_ended_some_days_ago_is_looked_at(house: House) -> None:
    ended(house, 3, ago=4)
    ended(house, 12, ago=3)
    assert flag_drifts_of(house.tenant.id) == 1


def test_a_workflow_that_ended_nothing_lately_is_not_looked_at(house: House) -> None:
    ended(house, 3, ago=9)
    ended(house, 12, ago=8)
    assert flag_drifts_of(house.tenant.id) == 0


def test_a_drift_is_another_tenants_own(house: House) -> None:
    ended(house, 3)
    ended(house, 12)
    assert flag_drifts_of(house.people.other_tenant.id) == 0
