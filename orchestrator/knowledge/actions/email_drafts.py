"""Keeping the drafts of letters that runs write (R-TOOL-19)."""

from collections.abc import Mapping
from uuid import UUID

from orchestrator.core.common.errors import UnexpectedEvent
from orchestrator.tools.models.destinations import MailDraft
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import current_tenant


def keep_draft(run: UUID, key: str, body: Mapping[str, object], digest: str) -> UUID:
    """Keep a draft; the same key again is the draft that stands. Joins the tenant's transaction. Raises
    Misfit where another letter was kept under the key."""
    house = current_tenant()
    assert house is not None
    kept = MailDraft(tenant_id=house, run_id=run, key=key, body=dict(body), sha256=digest, at=database_now())
    MailDraft.objects.bulk_create([kept], ignore_conflicts=True)
    found: tuple[UUID, str] = MailDraft.objects.values_list("id", "sha256").get(run_id=run, key=key)
    if found[1] != digest:
        raise UnexpectedEvent(node=key, event="another letter")
    return found[0]
