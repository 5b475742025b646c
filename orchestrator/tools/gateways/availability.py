"""Missing dependencies of tools on this machine, and missing settings of a tenant.

The reasons are shown where tools are listed, and to the run that would call them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from orchestrator.core.common.name_patterns import is_listed
from orchestrator.core.domain.tool_spec import Remote, ToolSpec
from orchestrator.core.tools.readiness import CredentialProblem, Life, credential_lack
from orchestrator.tools.gateways.dispatcher import from_environment
from orchestrator.tools.gateways.egress.service_client import origin_of
from orchestrator.tools.gateways.registry import particular_tools, shipped_tools
from orchestrator.tools.gateways.sandbox import bubblewrap, monty_scripts
from orchestrator.tools.models.tool_server import ToolServer
from tenancy.models import Secret


class Readiness(NamedTuple):
    """Tools that cannot be called now, and tools whose credential expires soon, each with the reason."""

    left_out: dict[str, str]
    cautions: dict[str, str]


def list_missing_dependencies() -> dict[str, str]:
    """Return the bundled tools that cannot be called on this machine, with the reason."""
    return {declared.spec.name: why for declared in particular_tools() if (why := declared.lacks())}


def missing_isolation() -> dict[str, str]:
    """Return the bundled tools that run here without the system's isolation, with the reason."""
    return {"sandbox.script": why} if (why := monty_scripts.missing_isolation()) else {}


def list_unavailable_tools(pinned: Mapping[str, ToolSpec], named: tuple[str, ...]) -> dict[str, str]:
    """Return the tools of a run that cannot be called as pinned, with the reason.

    Only tools that the run is pinned to and its workflow names are checked. A tool is listed if it cannot
    be called at all, or not in isolation.
    """
    found: dict[str, str] = {}
    for declared in particular_tools():
        name = declared.spec.name
        spec = pinned.get(name)
        if spec is None or not is_listed(named, name):
            continue
        apart = spec.isolated and spec.isolation == "machine"
        if why := declared.lacks() or (bubblewrap.explain_unavailability() if apart else ""):
            found[name] = why
    return found


def assess_tool_readiness(tools: Iterable[ToolSpec], at: datetime, until: datetime) -> Readiness:
    """Return the readiness of tools for a run from `at` to `until` at the latest.

    Call it inside the tenant's context.

    Spec: R-TOOL-6, R-TOOL-13.
    """
    asked = tuple(tools)
    left_out = {
        spec.name: why for spec in asked if spec.remote is None and (why := _find_missing_setting(spec))
    }
    lacks = _credential_lacks([spec for spec in asked if spec.remote is not None], at, until)
    return Readiness(
        left_out | {name: lack.gone for name, lack in lacks.items() if lack.gone},
        {name: lack.soon for name, lack in lacks.items() if lack.soon},
    )


def _find_missing_setting(spec: ToolSpec) -> str:
    declared = shipped_tools().get(spec.name)
    if declared is None:
        return ""
    if declared.service and origin_of(from_environment(declared.service) or "") is None:
        return f"{declared.service} names no service"
    return declared.unset()


def _credential_lacks(remote: list[ToolSpec], at: datetime, until: datetime) -> dict[str, CredentialProblem]:
    """Return the state of the credentials of remote tools, by tool."""
    if not remote:
        return {}
    servers = dict(ToolServer.objects.filter(removed_at=None).values_list("slug", "secret"))
    names = {spec.name: name for spec in remote if (name := _secret_of(spec, servers))}
    if not names:
        return {}
    rows = Secret.objects.filter(revoked_at=None, name__in=sorted(set(names.values())))
    kept = {row.name: row for row in rows.only("name", "expires_at", "renews_at")}
    found: dict[str, CredentialProblem] = {}
    for spec in remote:
        if (secret := names.get(spec.name)) is None:
            continue
        row = kept.get(secret)
        # The secret of a tool server is replaced manually; the secret of a request can renew itself.
        renews = row is not None and bool(row.renews_at) and _require_remote(spec).kind == "http"
        life = Life(row.expires_at, renews) if row is not None else None
        found[spec.name] = credential_lack(secret, life, at, until)
    return found


def _secret_of(spec: ToolSpec, servers: Mapping[str, str]) -> str:
    remote = _require_remote(spec)
    if remote.kind == "mcp":
        return servers.get(remote.server, "")
    return remote.request.secret if remote.request is not None else ""


def _require_remote(spec: ToolSpec) -> Remote:
    assert spec.remote is not None
    return spec.remote
