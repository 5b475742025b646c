"""Errors of a run's files."""

from orchestrator.core.common.errors import OrchestratorError


class PathRefused(OrchestratorError):
    """{path} is no name for a file of a workspace: {detail}."""

    code = "path-refused"
    http_status = 422


class WorkspaceRefused(OrchestratorError):
    """The workspace cannot be so: {detail}."""

    code = "workspace-refused"
    http_status = 422


class DiffRefused(OrchestratorError):
    """The diff is not applied: {detail}."""

    code = "diff-refused"
    http_status = 422


class WorkspaceMoved(OrchestratorError):
    """The workspace is at {now}, and this was made for {base}; read it again."""

    code = "workspace-moved"
