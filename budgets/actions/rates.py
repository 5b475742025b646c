"""A tenant's rate limits, in versions with a reason like its ceilings (R-BUDGET-11)."""

from typing import Final
from uuid import UUID

from budgets.core.rates import NAMES, Rates, of_tier
from budgets.ledger_sql import Cursor
from budgets.models import RateLimit
from tenancy.actions import write_audit_entry
from tenancy.core.errors import Stale
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import raw_cursor, take_advisory_lock, tenant_transaction

_NEWEST: Final = f"""
SELECT t.tier, r.id IS NOT NULL, {", ".join(f"r.{name}" for name in NAMES)}
  FROM tenancy_tenant t LEFT JOIN LATERAL (
       SELECT * FROM budgets_ratelimit WHERE tenant_id = t.id ORDER BY set_at DESC, id DESC LIMIT 1) r ON true
 WHERE t.id = %(tenant)s"""  # noqa: S608 - our own column names


def newest_rates(tenant_id: UUID, cursor: Cursor) -> Rates:
    """The limits in force: the newest version set, else those of the tenant's tier."""
    cursor.execute(_NEWEST, {"tenant": tenant_id}, prepare=True)
    row = cursor.fetchone()
    if row is None or not row[1]:
        return of_tier("" if row is None else str(row[0]))
    return Rates(**dict(zip(NAMES, row[2:], strict=True)))


def change_rates(
    tenant_id: UUID, rates: Rates, *, by: UUID | None, reason: str, expected: str | None = None
) -> Rates:
    """Set a new version; it holds from the next submission on. Audited. The same again changes nothing.

    Only if they still are what `expected` (their tag) says. Outermost verb: owns the transaction. Raises
    Stale.
    """
    with tenant_transaction(tenant_id):
        cursor = raw_cursor()
        take_advisory_lock(f"rates:{tenant_id}")
        before = newest_rates(tenant_id, cursor)
        if expected is not None and expected != before.tag:
            raise Stale
        if before == rates:
            return before
        RateLimit.objects.create(
            tenant_id=tenant_id, set_by=by, reason=reason, set_at=database_now(), **rates.model_dump()
        )
        write_audit_entry(
            tenant_id, by, verb="set_rates", object=f"tenant:{tenant_id}", before=before.model_dump(),
            after=rates.model_dump(), reason=reason,
        )  # fmt: skip
        return newest_rates(tenant_id, cursor)
