"""Posting against PostgreSQL: what is held, settled, refused; and that the pure model says the same."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from budgets.actions import PostHandle, Reserve, Settle, post_to_ledger, queue_post
from budgets.core.dimension import Dimension
from budgets.core.errors import AccountClosed, AccountMissing, DimensionUnknown, ReservationUnknown
from budgets.core.posting import LineState, apply_plan, explain_posting_refusal, plan_posting
from budgets.ledger_verification import verify_ledger
from budgets.queries import get_account_snapshot, get_headroom, get_usage_lines, list_run_entries
from budgets.reservation_check import open_reservation
from tenancy.db.ids import fresh_id
from tenancy.db.pipeline import Statement, execute_pipeline
from tenancy.db.statement_batch import Batch, RowRefused
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.core.budgets.figures import decimals
from tests.factories.budgets import NOON, Figures, Purse, amounts, ceilings, inside, open_purse
from tests.factories.plans import with_plans
from tests.proves import proves

CALL: Figures = {
    "model_turns": 1,
    "input_tokens": 1000,
    "output_tokens": 200,
    "total_tokens": 1200,
    "cost_usd": "0.05",
}
TOOK: Figures = {
    "model_turns": 1,
    "input_tokens": 700,
    "output_tokens": 80,
    "total_tokens": 780,
    "cost_usd": "0.02",
}


class Counting:
    """Makes trips and counts the statements they carry."""

    def __init__(self) -> None:
        self.sent = 0

    def __call__(self, connection: "psycopg.Connection[Any]", sayings: Sequence[Statement]) -> Any:
        self.sent += len(sayings)
        return execute_pipeline(connection, sayings)


def line(purse: Purse, dimension: str) -> LineState:
    """A line of the run as it stands."""
    with tenant_transaction(purse.tenant):
        return get_usage_lines(purse.run)[Dimension(dimension)]


def faults(purse: Purse) -> list[object]:
    """What the proof of the run's and of the tenant's ledger finds."""
    with tenant_transaction(purse.tenant):
        return [*verify_ledger(purse.run, open_effects=purse.held), *verify_ledger()]


@proves("R-BUDGET-2", part="reserve and settle")
def test_the_worst_case_is_held_before_and_the_measure_booked_after(house: House) -> None:
    purse = open_purse(house.tenant.id, {"cost_usd": 1, "input_tokens": 1500})
    effect, _ = purse.reserve(CALL)
    assert (line(purse, "input_tokens").used, line(purse, "input_tokens").reserved) == decimals(0, 1000)
    purse.settle(effect, TOOK)
    assert (line(purse, "input_tokens").used, line(purse, "input_tokens").reserved) == decimals(700, 0)
    assert line(purse, "cost_usd").used == Decimal("0.02")
    assert faults(purse) == []


@proves("R-BUDGET-6", part="refused before the call")
@proves("R-BUDGET-2", part="refused")
def test_a_reservation_beyond_what_is_left_is_refused_with_its_figures(house: House) -> None:
    purse = open_purse(house.tenant.id, {"input_tokens": 1500})
    purse.reserve(CALL)
    _, posting = purse.reserve(CALL)
    refused = posting.refused
    assert refused is not None
    assert (refused.dimension.value, refused.account) == ("input_tokens", "run")
    assert (refused.limit, refused.wanted, refused.left) == decimals(1500, 1000, 500)


@proves("R-BUDGET-2", part="a refusal leaves nothing")
def test_a_refused_posting_leaves_nothing_behind(house: House) -> None:
    purse = open_purse(house.tenant.id, {"output_tokens": 300})
    effect, _ = purse.reserve(CALL)
    settle = purse.settlement(effect, TOOK)
    with inside(purse.tenant) as cursor:
        before, entries = get_usage_lines(purse.run), len(list_run_entries(purse.run))
        posting = post_to_ledger(
            purse.tenant,
            purse.run,
            settles=(settle,),
            reserves=(Reserve(effect_id="next", amounts=amounts({"output_tokens": 300, "tool_calls": 1})),),
            at=NOON,
            cursor=cursor,
            book=get_account_snapshot(purse.run),
        )
        assert posting.refused is not None
        assert posting.entries == {}
        assert (get_usage_lines(purse.run), len(list_run_entries(purse.run))) == (before, entries)
        again = post_to_ledger(
            purse.tenant, purse.run, settles=(settle,), reserves=(), at=NOON, cursor=cursor
        )
        assert again.refused is None
    assert faults(purse) == []


@proves("R-BUDGET-2", part="overrun booked")
@proves("M11", part="overrun")
def test_a_provider_that_takes_more_is_booked_as_an_overrun_and_nothing_more_is_held(house: House) -> None:
    purse = open_purse(house.tenant.id, {"input_tokens": 1000, "cost_usd": "0.10"})
    effect, _ = purse.reserve(CALL)
    posting = purse.settle(effect, {**TOOK, "input_tokens": 1900, "cost_usd": "0.40"})
    assert posting.overrun == {"input_tokens": 900, "cost_usd": Decimal("0.35")}
    assert (line(purse, "input_tokens").used, line(purse, "input_tokens").left) == decimals(1900, 0)
    _, refused = purse.reserve({"input_tokens": 1})
    assert refused.refused is not None
    with tenant_transaction(purse.tenant):
        assert [entry.cause for entry in list_run_entries(purse.run) if not entry.tenant_line] == [
            "open", "reserve", "settle", "overrun",
        ]  # fmt: skip
    assert faults(purse) == []


@proves("R-BUDGET-16", part="in the database")
def test_a_zero_limit_forbids_its_kind_and_nothing_else(house: House) -> None:
    purse = open_purse(house.tenant.id, {"side_effects": 0, "cost_usd": 0})
    assert purse.reserve({"tool_calls": 1})[1].refused is None
    refused = purse.reserve({"tool_calls": 1, "side_effects": 1})[1].refused
    assert refused is not None
    assert refused.dimension == "side_effects"


@proves("R-BUDGET-16", part="gauges in the database")
def test_a_gauge_is_compared_each_time_and_never_adds_up(house: House) -> None:
    purse = open_purse(house.tenant.id, {"context_tokens": 100})
    for _ in range(3):
        assert purse.reserve({"context_tokens": 80, "model_turns": 1})[1].refused is None
    assert purse.reserve({"context_tokens": 101})[1].refused is not None
    assert line(purse, "context_tokens").reserved == 0


@proves("B5")
def test_failed_calls_count_and_retries_reserve_anew(house: House) -> None:
    purse = open_purse(house.tenant.id, {"model_turns": 2})
    for _ in range(2):
        effect, _ = purse.reserve({"model_turns": 1})
        purse.settle(effect, {"model_turns": 1})
    assert purse.reserve({"model_turns": 1})[1].refused is not None


@proves("B1")
def test_a_batch_larger_than_what_is_left_is_refused_whole(house: House) -> None:
    purse = open_purse(house.tenant.id, {"tool_calls": 10})
    batch = tuple(Reserve(effect_id=fresh_id().hex, amounts=amounts({"tool_calls": 1})) for _ in range(20))
    refused = purse.post(reserves=batch).refused
    assert refused is not None
    assert (refused.wanted, refused.left) == decimals(20, 10)


@proves("B3")
def test_an_effect_is_reserved_and_settled_at_most_once(house: House) -> None:
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve(CALL)
    settle = purse.settlement(effect, TOOK)
    purse.post(settles=(settle,))
    with pytest.raises(Exception, match=r"unique|not_negative|No open reservation|changed under"):
        purse.post(settles=(settle,))
    with pytest.raises(Exception, match="unique"):
        purse.post(reserves=(Reserve(effect_id=effect, amounts=amounts({"tool_calls": 1})),))
    assert line(purse, "model_turns").used == 1


@proves("R-BUDGET-17", part="open reservation")
def test_a_gateway_sees_whether_a_reservation_is_open(house: House) -> None:
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve(CALL)
    with tenant_transaction(purse.tenant):
        assert open_reservation(effect)
        assert not open_reservation(fresh_id().hex)
    purse.settle(effect, TOOK)
    with tenant_transaction(purse.tenant):
        assert not open_reservation(effect)


def test_a_posting_rides_in_a_batch_and_its_digests_are_known_before(house: House) -> None:
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve(CALL)
    with inside(purse.tenant) as cursor:
        known = get_account_snapshot(purse.run)
        with Batch(cursor) as batch:
            handle = queue_post(
                purse.tenant,
                purse.run,
                settles=(purse.settlement(effect, TOOK),),
                reserves=(Reserve(effect_id=fresh_id().hex, amounts=amounts(CALL)),),
                at=NOON,
                cursor=cursor,
                book=known,
                batch=batch,
            )
            binds = dict(handle.entries)
        posting = handle.result()
    assert posting.refused is None
    assert posting.entries == binds
    assert len(binds) == 2


def test_a_refusal_undoes_the_batch_it_rides_in_and_names_its_line(house: House) -> None:
    purse = open_purse(house.tenant.id, {"tool_calls": 0})

    def landing() -> None:
        with inside(purse.tenant) as cursor:
            batch = Batch(cursor)
            handles.append(
                queue_post(
                    purse.tenant,
                    purse.run,
                    settles=(),
                    reserves=(Reserve(effect_id="e", amounts=amounts({"tool_calls": 1})),),
                    at=NOON,
                    cursor=cursor,
                    book=get_account_snapshot(purse.run),
                    batch=batch,
                )
            )
            batch.land(b"SELECT 1", ())

    handles: list[PostHandle] = []
    with pytest.raises(RowRefused):
        with_plans(landing)
    with inside(purse.tenant) as cursor:
        refused = handles[-1].why(cursor)
        assert not open_reservation("e")
    assert refused.dimension is Dimension.TOOL_CALLS
    assert not refused.limit
    assert not refused.left


@proves("SPEED", part="statements of a posting")
def test_a_posting_without_refill_is_one_statement(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    purse = open_purse(house.tenant.id)
    effect, _ = purse.reserve(CALL)
    with inside(purse.tenant) as cursor:
        known = get_account_snapshot(purse.run)
        counting = Counting()
        monkeypatch.setattr("tenancy.db.statement_batch.execute_pipeline", counting)
        handle = queue_post(
            purse.tenant,
            purse.run,
            settles=(purse.settlement(effect, TOOK),),
            reserves=(Reserve(effect_id=fresh_id().hex, amounts=amounts(CALL)),),
            at=NOON,
            cursor=cursor,
            book=known,
        )
        assert handle.result().refused is None
    assert counting.sent == 1


def test_headroom_tells_what_is_left_of_every_line(house: House) -> None:
    ceilings(house.tenant.id, daily="2", monthly="10")
    purse = open_purse(house.tenant.id, {"cost_usd": 1, "tool_calls": 3})
    purse.reserve({"tool_calls": 1, "cost_usd": "0.10"})
    with tenant_transaction(purse.tenant):
        found = get_headroom(purse.run, NOON)
    assert found.left[Dimension.TOOL_CALLS] == 2
    assert found.left[Dimension.STEPS] is None
    assert found.left[Dimension.COST_USD] == Decimal("0.90")
    assert (found.tenant_day, found.tenant_month) == (Decimal("1.75"), Decimal("9.75"))
    assert found.tenant_cost == Decimal("1.90")


@proves("B4")
def test_time_passing_is_booked_whoever_holds_the_run(house: House) -> None:
    purse = open_purse(house.tenant.id, {"wall_clock_seconds": 60})
    purse.post(settles=(Settle(effect_id="", reserved={}, actual=amounts({"wall_clock_seconds": "61.5"})),))
    assert line(purse, "wall_clock_seconds").used == Decimal("61.5")
    assert faults(purse) == []


def test_bad_input_is_refused_by_name(house: House) -> None:
    purse = open_purse(house.tenant.id)
    with pytest.raises(DimensionUnknown):
        purse.reserve({"gold": 1})
    with pytest.raises(AccountMissing):
        Purse(tenant=purse.tenant, run=fresh_id()).reserve({"tool_calls": 1})
    purse.held["never"] = amounts({"cost_usd": 1})
    with pytest.raises(ReservationUnknown):
        purse.settle("never", {"cost_usd": 1})


@proves("R-SEC-1", part="budgets")
def test_another_tenants_run_is_not_there(house: House) -> None:
    theirs = open_purse(house.tenant.id, {"tool_calls": 3})
    mine = Purse(tenant=other_tenant(), run=theirs.run)
    with pytest.raises(AccountMissing):
        mine.reserve({"tool_calls": 1})
    with tenant_transaction(mine.tenant):
        assert get_usage_lines(theirs.run) == {}


def test_a_closed_account_takes_nothing_more(house: House) -> None:
    purse = open_purse(house.tenant.id)
    purse.close()
    with pytest.raises(AccountClosed):
        purse.reserve({"tool_calls": 1})


AMOUNTS = st.dictionaries(
    st.sampled_from(["steps", "tool_calls", "cost_usd"]), st.decimals(0, 3, places=2), max_size=3
)


@proves("R-BUDGET-2", part="property")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    limits=st.dictionaries(st.sampled_from(["steps", "tool_calls", "cost_usd"]), st.decimals(0, 8, places=2)),
    daily=st.decimals(0, 8, places=2),
    chunk=st.sampled_from(["0", "0.25", "5"]),
    steps=st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 3), st.integers(0, 30)), max_size=8),
)
def test_postgresql_and_the_pure_model_agree(
    house: House,
    limits: dict[str, Decimal],
    daily: Decimal,
    chunk: str,
    steps: list[tuple[dict[str, Decimal], dict[str, Decimal], int, int]],
) -> None:
    tenant_id = other_tenant()
    ceilings(tenant_id, daily=str(daily), tranche=chunk)
    purse = open_purse(tenant_id, {name: str(amount) for name, amount in limits.items()})
    model = {dimension: LineState(limit=limits.get(dimension.value)) for dimension in Dimension}
    at = NOON
    for worst, measured, ended, hours in steps:
        at += timedelta(hours=hours)
        settles = tuple(
            Settle(effect_id=effect, reserved=purse.held[effect], actual=measured)
            for effect in list(purse.held)[:ended]
        )
        reserve = Reserve(effect_id=fresh_id().hex, amounts=worst)
        plan = plan_posting(settles, (reserve,))
        expected = explain_posting_refusal(model, plan)
        posting = purse.post(settles=settles, reserves=(reserve,), at=at)
        if posting.refused is not None:
            assert posting.refused.account != "run" or posting.refused == expected
            continue
        assert expected is None
        model = apply_plan(model, plan)
        purse.held = {
            effect: held
            for effect, held in purse.held.items()
            if effect not in {s.effect_id for s in settles}
        }
        purse.held[reserve.effect_id] = worst
    with tenant_transaction(tenant_id):
        assert get_usage_lines(purse.run) == model
    assert faults(purse) == []


def other_tenant() -> UUID:
    """A tenant besides the house's own."""
    from tests.factories.tenancy import make_tenant  # noqa: PLC0415 - not before Django's apps are there

    return make_tenant().id
