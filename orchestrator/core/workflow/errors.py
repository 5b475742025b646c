"""Errors of a node that cannot answer an event."""

from orchestrator.core.common.errors import OrchestratorError


class UnexpectedEvent(OrchestratorError):
    """Node {node} cannot answer {event} here."""

    code = "misfit-event"
    http_status = 500
