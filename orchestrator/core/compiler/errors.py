"""Errors of workflows: not compiled, not published."""

from orchestrator.core.common.errors import OrchestratorError


class CompileFailed(OrchestratorError):
    """The workflow graph does not compile: {count} fault(s)."""

    code = "compile-failed"
    http_status = 422


class WorkflowUnknown(OrchestratorError):
    """There is no published workflow {slug}. GET /api/v1/workflows lists the published ones."""

    code = "workflow-unknown"
    http_status = 422
