"""The orchestrator app: what happens next?"""

from importlib import import_module

from django.apps import AppConfig


class OrchestratorConfig(AppConfig):
    """Hears the news of the lower floors and lends approvals its judgement of edits."""

    name = "orchestrator"

    def ready(self) -> None:
        """Connect receivers and ports."""
        import_module("orchestrator.receivers")
        import_module("orchestrator.wiring")
        import_module("orchestrator.retry_verification")
