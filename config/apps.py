"""The roof as a Django app: its checks, its commands, its grants."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ConfigApp(AppConfig):
    """Registers the system checks and the broker's app when Django is ready."""

    name = "config"

    def ready(self) -> None:
        """Import what registers itself; it needs the settings, which need this package first."""
        import_module("config.observability.checks")
        import_module("config.celery")
        import_module("config.api.openapi")
        import_module("config.auth.second_factor")
