"""Errors of webhook endpoints."""

from orchestrator.core.common.errors import OrchestratorError


class WebhookOff(OrchestratorError):
    """The webhook {name} is off; turn it on first."""

    code = "webhook-off"
