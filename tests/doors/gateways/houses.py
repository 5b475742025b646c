"""Tools that ask the tenant's own rows where they may go, called as a run would call them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.tools.gateways.registry import shipped_tools
from orchestrator.tools.queries.tools import tool_now
from tenancy.db.tenant_context import tenant_transaction
from tests.doors.gateways.effects import PATIENCE, SALT, ScriptedPermit, Told, call_tool, read
from traces.core.canonical import canonical_outside


def use_in_house(
    loop: EffectLoop,
    house: UUID | None,
    name: str,
    arguments: dict[str, Any],
    *,
    spec: ToolSpec | None = None,
    **changes: Any,
) -> Told:
    """One call for a tenant, waited for; under the shipped version unless another is given."""
    spec = spec or shipped_tools()[name].spec
    body = canonical_outside(arguments)
    effect = call_tool(name, body, **changes)
    started = ToolGateway().start(loop, effect, body, spec, SALT, ScriptedPermit(), tenant=house)
    return read(started.result(PATIENCE))


def registered(house: UUID, name: str) -> ToolSpec:
    """A tool's version as the tenant's registry has it."""
    with tenant_transaction(house):
        return tool_now(house, name).spec
