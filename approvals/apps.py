"""The approvals app."""

from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """Named so that Django finds it."""

    name = "approvals"
