"""The orchestrator app."""

from __future__ import annotations

from django.apps import AppConfig


class OrchestratorConfig(AppConfig):
    """Named so that Django finds it."""

    name = "orchestrator"
