"""Judging where a tenant's databases, mail server and private places are before they are kept, as they
would be judged when they are connected (P8, W3). The network is asked, so outside any transaction."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from orchestrator.core.common.errors import EgressRefused
from orchestrator.core.tools.destinations import Databases, MailServer
from orchestrator.core.tools.egress_policy import EgressPolicy, Target
from orchestrator.tools.gateways.egress.guarded_transport import resolve_allowed_addresses
from orchestrator.tools.queries.destinations import get_allowed_databases, mail_server
from orchestrator.tools.queries.tool_servers import leave_for
from tenancy.core.errors import InvalidInput
from tenancy.db.tenant_context import tenant_transaction


def check_database_addresses(tenant_id: UUID, wanted: Databases) -> None:
    """Raises InvalidInput naming each database that is new, or elsewhere than before, and cannot be reached:
    what stands already must not keep anybody from taking it out."""
    with tenant_transaction(tenant_id):
        standing = {one.origin for one in get_allowed_databases().databases}
        fresh = {
            number: (one.target, leave_for(one.target.origin))
            for number, one in enumerate(wanted.databases)
            if one.origin not in standing
        }
    found = refusals_of(list(fresh.values()))
    faults = [(f"/databases/{number}/host", why) for number, why in zip(fresh, found, strict=True)]
    _raise_faults(faults)


def check_mail_address(tenant_id: UUID, wanted: MailServer) -> None:
    """Raises InvalidInput where the mail server is another than before, and cannot be reached."""
    with tenant_transaction(tenant_id):
        before = mail_server()
        if not wanted.host or (before is not None and before.host and before.origin == wanted.origin):
            return
        leave = leave_for(wanted.target.origin)
    _raise_faults([("/host", refusals_of([(wanted.target, leave)])[0])])


def refusals_of(asked: Sequence[tuple[Target, EgressPolicy]]) -> list[EgressRefused | None]:
    """Why each target may not be reached, or None where it may; all are looked at side by side."""

    async def look(target: Target, leave: EgressPolicy) -> EgressRefused | None:
        try:
            await resolve_allowed_addresses(target, leave)
        except EgressRefused as refused:
            return refused
        return None

    async def look_at_all() -> list[EgressRefused | None]:
        return await asyncio.gather(*(look(target, leave) for target, leave in asked))

    return asyncio.run(look_at_all()) if asked else []


def _raise_faults(found: Sequence[tuple[str, EgressRefused | None]]) -> None:
    errors = [
        {"pointer": pointer, "code": "not-allowed", "detail": str(refused.data["detail"])}
        for pointer, refused in found
        if refused is not None
    ]
    if errors:
        raise InvalidInput(errors=errors)
