"""The approvals app: who said yes?"""

from importlib import import_module

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """Adds its check to the trace's."""

    name = "approvals"

    def ready(self) -> None:
        """Register the check of requests and decisions."""
        import_module("approvals.verification")
