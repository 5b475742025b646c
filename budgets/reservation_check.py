"""The budget half of the second guard: a gateway refuses a call without an open reservation.

Spec: R-BUDGET-17.
"""

from typing import Final

from tenancy.db.tenant_context import raw_cursor

_OPEN: Final = """
SELECT EXISTS (SELECT FROM budgets_entry r WHERE r.effect_id = %(effect)s AND r.cause = 'reserve')
   AND NOT EXISTS (SELECT FROM budgets_entry s
                    WHERE s.effect_id = %(effect)s AND s.cause IN ('settle', 'release'))"""


def open_reservation(effect_id: str) -> bool:
    """Return whether the effect holds a committed reservation that is not settled yet.

    Gateways call this in a tenant context of their own, independent of the machine's claims.
    """
    cursor = raw_cursor()
    cursor.execute(_OPEN, {"effect": effect_id}, prepare=True)
    row = cursor.fetchone()
    return row is not None and bool(row[0])
