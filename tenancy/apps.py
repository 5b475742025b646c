"""The tenancy app: who acts, and in which house?"""

from django.apps import AppConfig


class TenancyConfig(AppConfig):
    """Puts the guard on every database connection."""

    name = "tenancy"

    def ready(self) -> None:
        """Install the guard that refuses tenant tables outside a tenant."""
        from tenancy.db.tenant_context import install_guard  # noqa: PLC0415 - models exist only now

        install_guard()
