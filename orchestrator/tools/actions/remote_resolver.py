"""Resolve a run's remote tools at the time of a call, from the tenant's rows (R-TOOL-20, R-TOOL-21)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import Error

from orchestrator.core.domain.tool_spec import Remote, ToolSpec
from orchestrator.core.tools.egress_policy import target_of
from orchestrator.core.tools.remote_definition import Drift
from orchestrator.tools.actions.tool_servers import note_drift
from orchestrator.tools.gateways.egress.service_client import CallFailed
from orchestrator.tools.gateways.egress.token_renewal import RenewedSecret, ask_token
from orchestrator.tools.gateways.registry import Tool
from orchestrator.tools.gateways.remote_tools import NO_SECRET, RequestSecret, request_tool, server_tool
from orchestrator.tools.models.tool_server import ServerTool
from orchestrator.tools.queries.tool_servers import leave_for, place_of_server, server_of
from tenancy.core.errors import NotFound, SecretUnusable
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.secret_store import Renewal, keep_secret, load_credential


class TenantRemotes:
    """The remote tools of one tenant, resolved again for each call."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant = tenant_id

    def find(self, spec: ToolSpec) -> Tool[Any, Any]:
        """Return the pinned tool as it can be called now.

        Raises: CallFailed if it cannot be called; nothing was sent.
        """
        remote = spec.remote
        assert remote is not None
        try:
            with tenant_transaction(self._tenant):
                return (
                    self._server_tool(spec, remote) if remote.kind == "mcp" else self._request(spec, remote)
                )
        except NotFound:
            raise _build_call_refusal(f"the server {remote.server} was removed") from None
        except Error as error:
            detail = type(error).__name__.encode()
            raise CallFailed("unreachable", sent=False, transient=True, detail=detail) from error
        except SecretUnusable as unusable:
            raise _build_call_refusal(str(unusable)) from None

    def _server_tool(self, spec: ToolSpec, remote: Remote) -> Tool[Any, Any]:
        server = server_of(remote.server)
        if server.origin != remote.origin:
            raise _build_call_refusal(
                f"the server {remote.server} is not the one that the tool was admitted from"
            )
        row = ServerTool.objects.filter(server=server, tool=remote.tool).first()
        if row is None or row.state != "admitted" or row.admitted != remote.definition:
            raise _build_call_refusal(
                f"{spec.name} is in quarantine, or was admitted anew since this run began"
            )
        return server_tool(spec, place_of_server(self._tenant, server), self._note_drift)

    def _request(self, spec: ToolSpec, remote: Remote) -> Tool[Any, Any]:
        assert remote.request is not None
        name = remote.request.secret
        secret = self._secret(spec, name, remote.origin) if name else NO_SECRET
        return request_tool(spec, leave_for(remote.origin), secret)

    def _secret(self, spec: ToolSpec, name: str, origin: str) -> RequestSecret:
        """Return the secret of a request, valid for as long as the tool may take."""
        lasting = timedelta(milliseconds=spec.timeout_ms)
        found = load_credential(self._tenant, name, origin, lasting=lasting)
        renewal = found.renewal
        if renewal is None:
            return RequestSecret(value=found.value, expired=found.expired)
        leave = leave_for(target_of(renewal.url).origin)

        async def renew() -> str:
            fresh = await ask_token(renewal, leave)
            await asyncio.to_thread(self._store_renewal, name, origin, renewal, fresh)
            return fresh.value

        return RequestSecret(value=found.value, expired=found.expired, renew=renew)

    def _store_renewal(self, name: str, origin: str, renewal: Renewal, fresh: RenewedSecret) -> None:
        """Store what the token endpoint returned. A concurrent renewal is overwritten."""
        keep_secret(
            self._tenant, name, fresh.value, origin=origin, by=None, reason="It had expired and was renewed.",
            expires_at=database_now() + timedelta(seconds=fresh.seconds),
            renewal=replace(renewal, refresh_token=fresh.refresh_token),
        )  # fmt: skip

    def _note_drift(self, drift: Drift) -> None:
        note_drift(self._tenant, drift)


def _build_call_refusal(why: str) -> CallFailed:
    return CallFailed("refused", sent=False, detail=why.encode("utf-8", "backslashreplace"))
