"""`manage.py prepare`: what a start does once, in one process: migrate, check, seed."""

from __future__ import annotations

from argparse import ArgumentParser
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections
from django.db.migrations.executor import MigrationExecutor


class Command(BaseCommand):
    """Bring the database to what this code expects; harmless the second time."""

    help = "Migrate, check the application's role and settings, seed the demonstration; each as asked."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which of them."""
        parser.add_argument("--migrate", action="store_true", help="as the owner of DATABASE_OWNER_URL")
        parser.add_argument("--seed", action="store_true", help="put the demonstration's people in")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Raises SystemCheckError where the application's role could step round the guards."""
        if options["migrate"] and (missing := _count_missing_migrations()):
            self.stdout.write(f"Migrations to apply: {missing}")
            call_command("migrate", database="owner", interactive=False, skip_checks=True, verbosity=0)
        # The rest of the checks is for who changes the code: they read every page and address of the house.
        call_command("check", tags=["database"], databases=["default"], stdout=StringIO())
        if options["seed"]:
            # The start names the accounts at its end.
            call_command("seed_demo", skip_checks=True, verbosity=0)
            self.stdout.write("The demonstration's tenants and people are there.")


def _count_missing_migrations() -> int:
    """How many migrations are missing. `migrate` would also compare every model where none is."""
    executor = MigrationExecutor(connections["owner"])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
