"""A lane's account in the tables: drawn from its parent, held there, given back (R-BUDGET-8)."""

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError

from budgets.actions import Posting, open_run_account
from budgets.actions.child_accounts import close_lane_account, open_lane_account
from budgets.core.dimension import Dimension
from budgets.core.errors import LaneUnbounded, ReservationsOpen
from budgets.core.posting import LineState
from budgets.ledger_verification import verify_ledger, verify_windows
from budgets.models import Account, Tranche
from budgets.queries import get_usage_lines, tenant_spending
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.budgets import NOON, Figures, Purse, amounts, ceilings, inside, open_purse
from tests.proves import proves

D = Decimal


def opened(parent: Purse, **wanted: int | str) -> tuple[Purse, Posting]:
    """A lane of the parent, in a transaction of its own."""
    lane = Purse(tenant=parent.tenant, run=fresh_id())
    with inside(parent.tenant) as cursor:
        return lane, open_lane_account(parent.tenant, parent.run, lane.run, amounts(wanted), NOON, cursor)


def ended(parent: Purse, lane: Purse) -> Posting:
    """The lane's end."""
    with inside(parent.tenant) as cursor:
        return close_lane_account(parent.tenant, parent.run, lane.run, NOON, cursor)


def line(purse: Purse, name: Dimension) -> LineState:
    """A line as it stands."""
    with tenant_transaction(purse.tenant):
        return get_usage_lines(purse.run)[name]


def spends(purse: Purse, figures: Figures) -> None:
    """One effect that takes what it reserved."""
    effect, posting = purse.reserve(figures)
    assert posting.refused is None
    purse.settle(effect, figures)


@proves("R-BUDGET-8", part="in the tables")
def test_a_lane_draws_on_its_parent_and_what_it_does_not_use_returns(house: House) -> None:
    ceilings(house.tenant.id, daily="5")
    parent = open_purse(house.tenant.id, {"cost_usd": 1, "tool_calls": 10, "depth": 2})
    lane, posting = opened(parent, cost_usd="0.50", tool_calls=4)
    assert posting.refused is None
    assert [line(parent, name).left for name in (Dimension.COST_USD, Dimension.TOOL_CALLS)] == [
        D("0.50"),
        D(6),
    ]
    assert line(lane, Dimension.DEPTH).limit == 1
    spends(lane, {"cost_usd": "0.20", "tool_calls": 3})
    refused = lane.reserve({"tool_calls": 2})[1].refused
    assert refused is not None
    assert (refused.account, refused.limit) == ("run", D(4))
    assert ended(parent, lane).refused is None
    assert line(parent, Dimension.COST_USD) == LineState(limit=D(1), used=D("0.20"))
    assert line(parent, Dimension.TOOL_CALLS).left == 7
    parent.close()
    with tenant_transaction(house.tenant.id):
        assert not Tranche.objects.filter(run_account_id=lane.run).exists()
        assert tenant_spending(NOON)["tenant_day"] == D("0.20")
        assert [*verify_ledger(), *verify_windows()] == []


@proves("R-BUDGET-8", part="never more than the parent has left, in the tables")
def test_lanes_together_never_have_more_than_their_parent(house: House) -> None:
    parent = open_purse(house.tenant.id, {"tool_calls": 5, "depth": 1})
    spends(parent, {"tool_calls": 1})
    lanes = [opened(parent, tool_calls=3)[0] for _ in range(3)]
    assert [line(lane, Dimension.TOOL_CALLS).limit for lane in lanes] == [3, 1, 0]
    assert parent.reserve({"tool_calls": 1})[1].refused is not None
    deeper = opened(lanes[0], tool_calls=1)[1].refused
    assert deeper is not None
    assert (deeper.dimension, deeper.limit) == (Dimension.DEPTH, D(0))
    for lane in lanes:
        ended(parent, lane)
    assert line(parent, Dimension.TOOL_CALLS) == LineState(limit=D(5), used=D(1))


@proves("R-BUDGET-9", part="lanes")
def test_no_lane_spends_past_the_tenants_ceiling_by_having_no_limit(house: House) -> None:
    ceilings(house.tenant.id, daily="0.50", tranche="0")
    parent = open_purse(house.tenant.id, {"tool_calls": 10, "depth": 2})
    with pytest.raises(LaneUnbounded):
        opened(parent, tool_calls=1)
    _, allowed = opened(parent, cost_usd="0.40")
    assert allowed.refused is None
    _, posting = opened(parent, cost_usd="0.20")
    assert posting.refused is not None
    assert posting.refused.account == "tenant_day"


def test_a_lane_with_an_effect_in_flight_does_not_end(house: House) -> None:
    parent = open_purse(house.tenant.id, {"tool_calls": 5})
    lane, _ = opened(parent, tool_calls=3)
    lane.reserve({"tool_calls": 1})
    with pytest.raises(ReservationsOpen):
        ended(parent, lane)


def rogue(tenant_id: UUID, values: Mapping[str, object], *statements: str) -> None:
    """Rows that no verb would write."""
    with inside(tenant_id) as cursor:
        for statement in statements:
            cursor.execute(statement, values)


ROGUE = """
INSERT INTO budgets_account (id, tenant_id, kind, run_id, parent_id, currency, opened_at)
VALUES (%(id)s, %(tenant)s, 'run', %(id)s, %(parent)s, 'USD', now())"""
RICH = """
INSERT INTO budgets_line (id, tenant_id, account_id, dimension, "limit", used, reserved)
VALUES (gen_random_uuid(), %(tenant)s, %(id)s, 'tool_calls', %(limit)s, 0, 0)"""


@proves("R-BUDGET-8", part="guarded")
@pytest.mark.parametrize("limit", [4, None])
def test_no_lane_has_more_than_its_parent_holds_for_it(house: House, limit: int | None) -> None:
    parent = open_purse(house.tenant.id, {"tool_calls": 5})
    parent.reserve({"tool_calls": 3})
    values = {"id": fresh_id(), "tenant": house.tenant.id, "parent": parent.run, "limit": limit}
    with pytest.raises(IntegrityError, match="its parent holds 3"):
        rogue(house.tenant.id, values, ROGUE, RICH)


@proves("R-BUDGET-8", part="guarded")
def test_the_database_knows_no_lane_without_an_open_parent_and_moves_none(house: House) -> None:
    parent, other = (open_purse(house.tenant.id, {"tool_calls": 5}) for _ in range(2))
    lane, _ = opened(parent, tool_calls=3)
    with pytest.raises(IntegrityError, match="stays with its parent"), tenant_transaction(house.tenant.id):
        Account.objects.filter(id=lane.run).update(parent_id=other.run)
    other.close()
    for nobody in (other.run, UUID(int=1)):
        values = {"id": fresh_id(), "tenant": house.tenant.id, "parent": nobody}
        with pytest.raises(IntegrityError, match="has no open parent"):
            rogue(house.tenant.id, values, ROGUE)


READ = """
SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables
 WHERE relname IN ('budgets_account', 'budgets_line')"""


def test_what_is_read_to_open_an_account_does_not_grow_with_the_book(
    house: House, superuser: psycopg.Connection
) -> None:
    # In a small book one index is as good as another.
    with inside(house.tenant.id) as cursor:
        for _ in range(200):
            open_run_account(house.tenant.id, fresh_id(), {"cost_usd": D(1)}, NOON, cursor)
    superuser.execute("VACUUM (ANALYZE) budgets_account, budgets_line")
    read: list[int] = []
    for _ in range(4):
        with inside(house.tenant.id) as cursor:
            # Of a table of a few pages all rows of a tenant cost no more than one row by its key.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; DISCARD PLANS")
            ((before,),) = cursor.execute(READ)
            open_run_account(house.tenant.id, fresh_id(), {"cost_usd": D(1)}, NOON, cursor)
            ((after,),) = cursor.execute(READ)
            read.append(after - before)
    assert len(set(read)) == 1, read
