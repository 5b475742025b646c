"""Database access of a bundled tool to the tenant that it is called for.

It runs outside the event loop, on a connection that is closed at once.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar
from uuid import UUID

from django.db import Error, connection

from orchestrator.tools.gateways.egress.service_client import CallFailed, ToolContext
from tenancy.db.tenant_context import tenant_transaction

T = TypeVar("T")
_KEEPERS: "dict[str, KeepDraft]" = {}


class KeepDraft(Protocol):
    """Stores a draft of a run, once per key, and returns its id. Called inside the tenant's transaction."""

    def __call__(self, run: UUID, key: str, body: Mapping[str, object], digest: str) -> UUID: ...


def register_draft_keeper(keep: KeepDraft) -> None:
    """Register the action that stores drafts, because gateways must not import actions."""
    _KEEPERS["draft"] = keep


def keep_draft(run: UUID, key: str, body: Mapping[str, object], digest: str) -> UUID:
    """Store a draft through the registered action."""
    return _KEEPERS["draft"](run, key, body, digest)


async def in_house(context: ToolContext, ask: Callable[[], T]) -> T:
    """Run `ask` inside the tenant's transaction, in a worker thread, and return its result.

    Other errors of `ask` pass through.

    Raises: CallFailed where there is no tenant, or the database cannot be queried.
    """
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
