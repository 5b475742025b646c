"""The approvals app: who said yes?"""

from importlib import import_module

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """The app of approvals; it adds its own check to the verification of a trace."""

    name = "approvals"

    def ready(self) -> None:
        """Register the check of requests and decisions."""
        import_module("approvals.verification")
