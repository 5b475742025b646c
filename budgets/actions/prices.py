"""A tenant's own prices, in versions: its contract, or the worst case it declares for an unlisted model
(R-BUDGET-15)."""

from datetime import datetime
from uuid import UUID

from django.db.models import Max

from budgets.core.pricing import ModelPrice
from budgets.models import Price
from tenancy.actions import write_audit_entry
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction


def state_price(tenant_id: UUID, price: ModelPrice, *, by: UUID | None, reason: str) -> ModelPrice:
    """`declare_price` as an admin asks for it: from now on, one after the other. Outermost verb: owns the
    transaction."""
    with tenant_transaction(tenant_id):
        take_advisory_lock(f"prices:{tenant_id}")
        return declare_price(tenant_id, price, by=by, reason=reason, at=database_now())


def declare_price(
    tenant_id: UUID, price: ModelPrice, *, by: UUID | None, reason: str, at: datetime
) -> ModelPrice:
    """Add a version of a model's price; earlier ones stay. The price with its version. Audited (B8).

    Runs keep the version they were pinned to. Joins the transaction. Two at once: one fails on the unique
    version.
    """
    mine = Price.objects.filter(tenant_id=tenant_id, provider=price.provider, model=price.model)
    before = mine.order_by("-version").first()
    number = (mine.aggregate(newest=Max("version"))["newest"] or 0) + 1
    versioned = price.evolve(version=f"{price.source} {number}", valid_from=at)
    shown = versioned.model_dump(mode="json")
    Price.objects.create(
        tenant_id=tenant_id,
        provider=price.provider,
        model=price.model,
        version=number,
        price=shown,
        valid_from=at,
        set_by=by,
        reason=reason,
    )
    write_audit_entry(
        tenant_id,
        by,
        verb="declare_price",
        object=f"price:{price.provider}/{price.model}",
        before=before.price if before else {},
        after=shown,
        reason=reason,
    )
    return versioned
