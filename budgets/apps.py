"""The budgets app."""

from __future__ import annotations

from django.apps import AppConfig


class BudgetsConfig(AppConfig):
    """Named so that Django finds it."""

    name = "budgets"
