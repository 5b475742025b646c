"""The traces app."""

from __future__ import annotations

from django.apps import AppConfig


class TracesConfig(AppConfig):
    """Named so that Django finds it."""

    name = "traces"
