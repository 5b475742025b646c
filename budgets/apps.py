"""The budgets app: what may be spent?"""

from importlib import import_module

from django.apps import AppConfig


class BudgetsConfig(AppConfig):
    """Puts the ledger among the things that `trace verify` proves."""

    name = "budgets"

    def ready(self) -> None:
        """Import what registers itself; it needs the models, which exist only now."""
        import_module("budgets.ledger_verification")
