"""services.*: the demo company's running services, how they are, and the restart that a person must approve.

A restart honours keys: the same key is the same restart, however often it is sent, and the lookup finds it by
its key after a crash. It is verified by reading the status back: the instance that runs now is the one that
the restart started. Whether the service is well again is another question, which the workflow asks.
"""

from typing import Annotated

from pydantic import Field

from orchestrator.core.domain.tool_spec import ReadBack, Reversibility, Risk, Verifier
from orchestrator.tools.gateways.company.orders import SERVICE
from orchestrator.tools.gateways.egress.service_client import ServiceResponse, ToolContext
from orchestrator.tools.gateways.registry import ToolResult, read_only_tool, tool

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,63}$", description="such as checkout")]
Reason = Annotated[str, Field(min_length=1, max_length=500, description="what the evidence shows")]


class Listed(ToolResult):
    name: str
    title: str
    status: str
    healthy: bool
    depends_on: list[str]


class Services(ToolResult):
    services: list[Listed]


class Status(ToolResult):
    """`status` is healthy, degraded or down; `instance` names the running start of the
    service."""

    name: str
    status: str
    healthy: bool
    version: str
    instance: str
    restarts: int
    started_at: str
    depends_on: list[str]
    failing_dependencies: list[str]


class LogLine(ToolResult):
    at: str
    level: str
    text: str


class Logs(ToolResult):
    name: str
    instance: str
    errors: int
    newest_error: str | None
    lines: list[LogLine]


class Metric(ToolResult):
    """`now` and `usual` are decimal strings in `unit`."""

    name: str
    unit: str
    now: str
    usual: str


class Metrics(ToolResult):
    name: str
    instance: str
    metrics: list[Metric]


class Restart(ToolResult):
    id: str
    service: str
    instance: str
    reason: str
    key: str


@read_only_tool(
    name="services.list",
    category="infrastructure",
    capability="service_list",
    service=SERVICE,
    trust="trusted",
)
async def list_services(context: ToolContext) -> ServiceResponse[Services]:
    """List the running services: name, status, what each depends on."""
    return await context.get("/services")


@read_only_tool(
    name="services.status",
    category="infrastructure",
    capability="service_status",
    service=SERVICE,
    trust="trusted",
    facts={
        "service": "/name",
        "status": "/status",
        "healthy": "/healthy",
        "instance": "/instance",
        "version": "/version",
        "failing": "/failing_dependencies/0",
    },
)
async def read_service_status(context: ToolContext, service: Name) -> ServiceResponse[Status]:
    """Look at one service: status, running instance, version, and which of its dependencies fail."""
    return await context.get("/services/{}", service)


@read_only_tool(
    name="services.logs",
    category="infrastructure",
    capability="service_logs",
    service=SERVICE,
    facts={"service": "/name", "instance": "/instance", "errors": "/errors", "newest_error": "/newest_error"},
)
async def read_service_logs(
    context: ToolContext,
    service: Name,
    limit: Annotated[int, Field(ge=1, le=200, description="the newest so many lines")] = 20,
) -> ServiceResponse[Logs]:
    """Read the newest log lines of a service's running instance, oldest first."""
    return await context.get("/services/{}/logs", service, query={"limit": str(limit)})


@read_only_tool(
    name="services.metrics",
    category="infrastructure",
    capability="service_metrics",
    service=SERVICE,
    trust="trusted",
    facts={
        "service": "/name",
        "instance": "/instance",
        "latency_p95_ms": "/metrics/0/now",
        "error_rate_percent": "/metrics/1/now",
        "connections_in_use": "/metrics/3/now",
        "connections_unit": "/metrics/3/unit",
    },
)
async def read_service_metrics(context: ToolContext, service: Name) -> ServiceResponse[Metrics]:
    """Read a service's latency, error rate, connections and memory, each beside its usual value."""
    return await context.get("/services/{}/metrics", service)


@tool(
    name="services.restart",
    category="infrastructure",
    capability="service_restart",
    risk=Risk.DESTRUCTIVE,
    reversibility=Reversibility.IRREVERSIBLE,
    service=SERVICE,
    external=True,
    honours_keys=True,
    trust="trusted",
    max_retries=2,
    sensitive=("/service",),
    side_effects="A running service is stopped and started again.",
    effect_sentence="Restart the service {service}: {reason}",
    blast_radius="Everybody who uses {service}, and every service that depends on it, for about 20 seconds.",
    preconditions=("status, logs and metrics of the service were read",),
    effects=("a new instance of the service runs",),
    conflict_keys=("service:{service}",),
    claims=("has been restarted", "have restarted", "was restarted"),
    queue="operations",
    facts={"service": "/service", "instance": "/instance", "restart_id": "/id"},
    verifier=Verifier(
        name="read_back",
        equal={"/result/service": "/arguments/service"},
        read_back=ReadBack(
            tool="services.status",
            arguments={"service": "/result/service"},
            equal={"/name": "/arguments/service", "/instance": "/result/instance"},
        ),
    ),
)
async def restart_service(context: ToolContext, service: Name, reason: Reason) -> ServiceResponse[Restart]:
    """Restart one service. Needs a person's approval; whoever uses the service notices."""
    # The very bytes that were approved are sent: they are the service's own document (G2).
    return await context.post("/restarts", context.arguments)


@restart_service.lookup
async def find_by_key(context: ToolContext, _arguments: object) -> ServiceResponse[Restart] | None:
    """The restart made under this call's key."""
    listed = await context.get("/restarts", query={"key": context.key})
    return listed.newest("restarts")
