"""What a shipped tool may ask of the tenant that it is called for: beside the loop, on a connection that is
given back at once.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar
from uuid import UUID

from django.db import Error, connection

from orchestrator.gateways.tools.service_client import CallFailed, ToolContext
from tenancy.db.tenant_context import tenant_transaction

T = TypeVar("T")
_KEEPERS: "dict[str, KeepDraft]" = {}


class KeepDraft(Protocol):
    """Keeps a draft of a run, once a key; its id. Inside the tenant's transaction."""

    def __call__(self, run: UUID, key: str, body: Mapping[str, object], digest: str) -> UUID: ...


def register_draft_keeper(keep: KeepDraft) -> None:
    """The verb that keeps drafts: gateways know no verbs, they are given them."""
    _KEEPERS["draft"] = keep


def keep_draft(run: UUID, key: str, body: Mapping[str, object], digest: str) -> UUID:
    """Keep a draft, by the verb that was registered."""
    return _KEEPERS["draft"](run, key, body, digest)


async def in_house(context: ToolContext, ask: Callable[[], T]) -> T:
    """What `ask` answers inside the tenant's transaction. Raises CallFailed where there is no tenant, or the
    database cannot be asked; other errors pass."""
    if context.tenant is None:
        raise CallFailed("refused", sent=False, detail=b"this tool is called for a tenant")
    try:
        return await asyncio.to_thread(_call_in_tenant, context.tenant, ask)
    except Error as error:
        detail = type(error).__name__.encode()
        raise CallFailed("unreachable", sent=False, transient=True, detail=detail) from error


def _call_in_tenant(tenant_id: UUID, ask: Callable[[], T]) -> T:
    try:
        with tenant_transaction(tenant_id):
            return ask()
    finally:
        connection.close()
