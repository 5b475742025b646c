"""Where a run's remote tools are at the moment of a call, under the tenant's rows (R-TOOL-20, R-TOOL-21)."""

from typing import Any
from uuid import UUID

from django.db import Error

from orchestrator.actions.servers import note_drift
from orchestrator.core.tool import Remote, ToolSpec
from orchestrator.core.tool_definition import Drift
from orchestrator.gateways.tools.http import CallFailed
from orchestrator.gateways.tools.registry import Tool
from orchestrator.gateways.tools.remote import request_tool, server_tool
from orchestrator.models import ServerTool
from orchestrator.queries.servers import leave_for, place_of_server, server_of
from tenancy.context import tenant
from tenancy.core.errors import NotFound, SecretUnusable
from tenancy.secrets import reveal


class TenantRemotes:
    """The remote tools of one tenant, each found anew for each call."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant = tenant_id

    def find(self, spec: ToolSpec) -> Tool[Any, Any]:
        """The pinned tool as it can be called now. Raises CallFailed where it cannot; nothing was sent."""
        remote = spec.remote
        assert remote is not None
        try:
            with tenant(self._tenant):
                return (
                    self._server_tool(spec, remote) if remote.kind == "mcp" else self._request(spec, remote)
                )
        except NotFound:
            raise _refused(f"the server {remote.server} was removed") from None
        except Error as error:
            detail = type(error).__name__.encode()
            raise CallFailed("unreachable", sent=False, transient=True, detail=detail) from error
        except SecretUnusable as unusable:
            raise _refused(str(unusable)) from None

    def _server_tool(self, spec: ToolSpec, remote: Remote) -> Tool[Any, Any]:
        server = server_of(remote.server)
        if server.origin != remote.origin:
            raise _refused(f"the server {remote.server} is not the one that the tool was admitted from")
        row = ServerTool.objects.filter(server=server, tool=remote.tool).first()
        if row is None or row.state != "admitted" or row.admitted != remote.definition:
            raise _refused(f"{spec.name} is in quarantine, or was admitted anew since this run began")
        return server_tool(spec, place_of_server(self._tenant, server), self._changed)

    def _request(self, spec: ToolSpec, remote: Remote) -> Tool[Any, Any]:
        assert remote.request is not None
        name = remote.request.secret
        secret = reveal(self._tenant, name, remote.origin) if name else ""
        return request_tool(spec, leave_for(remote.origin), secret)

    def _changed(self, drift: Drift) -> None:
        note_drift(self._tenant, drift)


def _refused(why: str) -> CallFailed:
    return CallFailed("refused", sent=False, detail=why.encode("utf-8", "backslashreplace"))
