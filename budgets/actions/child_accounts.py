"""A lane's account in the tables: opened on what its parent has left, given back when it ends (R-BUDGET-8).

The rules are those of budgets/core/child_accounts.py. No run opens a lane yet: these are the verbs that it
will call, in the commit that writes the lane's run, and in the one that ends it.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from budgets.actions.accounts import close_run_account, open_account
from budgets.actions.posting import Posting, held_book, post_to_ledger
from budgets.core.amounts import Vector
from budgets.core.child_accounts import (
    build_lane_reservation,
    build_lane_settlement,
    lane_effect,
    lane_limits,
)
from budgets.core.dimension import Dimension
from budgets.core.entry import read_amounts
from budgets.core.errors import AccountClosed, LaneUnbounded, ReservationUnknown
from budgets.core.posting import LineState, Reserve
from budgets.ledger_sql import STANDING, Cursor

LEVEL: Final = Decimal(1)
_DRAWN: Final = """
SELECT amounts FROM budgets_entry
 WHERE tenant_id = %(tenant)s AND run_id = %(run)s AND effect_id = %(effect)s AND cause = 'reserve'"""


def open_lane_account(
    tenant_id: UUID,
    parent_id: UUID,
    lane_id: UUID,
    wanted: Mapping[str, Decimal | None],
    at: datetime,
    cursor: Cursor,
) -> Posting:
    """Open an account for a lane: never more of anything than its parent has left, and all of that reserved
    on the parent. Joins the transaction.

    Refused, with the parent's line, where a lane would lie deeper than its parent may go. Raises
    AccountMissing, AccountClosed, DimensionUnknown, AmountInvalid, and LaneUnbounded where neither side
    limits the cost: a lane draws on no ceiling of the tenant's, its parent has drawn for it (R-BUDGET-9).
    """
    book = held_book(tenant_id, parent_id, at, cursor)
    if book.closed:
        raise AccountClosed(run=str(parent_id))
    limits = lane_limits(_load_account_lines(tenant_id, parent_id, cursor), wanted)
    if limits.get(Dimension.COST_USD) is None:
        raise LaneUnbounded(run=str(parent_id))
    drawing = build_lane_reservation(lane_id.hex, limits)
    deeper = Reserve(effect_id=drawing.effect_id, amounts={**drawing.amounts, "depth": LEVEL})
    posting = post_to_ledger(
        tenant_id, parent_id, settles=(), reserves=(deeper,), at=at, cursor=cursor, book=book
    )
    if posting.refused is None:
        open_account(
            tenant_id,
            lane_id,
            Vector.of({name.value: limit for name, limit in limits.items()}),
            at,
            cursor,
            parent=parent_id,
        )
    return posting


def close_lane_account(
    tenant_id: UUID, parent_id: UUID, lane_id: UUID, at: datetime, cursor: Cursor
) -> Posting:
    """End a lane's account: what it used is settled on its parent, the rest is the parent's again. Joins the
    transaction. Raises ReservationsOpen while an effect of the lane holds a reservation, AccountMissing,
    ReservationUnknown for a lane of another parent."""
    held_book(tenant_id, parent_id, at, cursor)
    effect = lane_effect(lane_id.hex)
    cursor.execute(_DRAWN, {"tenant": tenant_id, "run": parent_id, "effect": effect})
    row = cursor.fetchone()
    if row is None:
        raise ReservationUnknown(effect=effect)
    close_run_account(tenant_id, lane_id, at, cursor=cursor)
    _, reserved, _ = read_amounts(row[0])
    drawing = Reserve(effect_id=effect, amounts={name.value: amount for name, amount in reserved.items()})
    settle = build_lane_settlement(lane_id.hex, drawing, _load_account_lines(tenant_id, lane_id, cursor))
    return post_to_ledger(tenant_id, parent_id, settles=(settle,), reserves=(), at=at, cursor=cursor)


def _load_account_lines(tenant_id: UUID, account: UUID, cursor: Cursor) -> dict[Dimension, LineState]:
    cursor.execute(STANDING, {"tenant": tenant_id, "accounts": [account]})
    found = {
        Dimension(name): LineState(limit=limit, used=used, reserved=reserved)
        for _, name, limit, used, reserved in cursor.fetchall()
    }
    return {name: found[name] for name in Dimension if name in found}
