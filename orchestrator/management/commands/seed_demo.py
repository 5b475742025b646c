"""`manage.py seed_demo`: the demonstration's tenants, people and workflows. Safe to run at every start."""

from typing import Any

from django.core.management.base import BaseCommand

from orchestrator.publishing.actions.seed import seed_tenant
from tenancy.core.demo_users import CAST, PASSWORD
from tenancy.demo_seed import seed_people


class Command(BaseCommand):
    """Seeds both demonstration tenants."""

    help = "Make the demonstration's tenants, people, tools and workflows; what is there stays."

    def handle(self, *args: Any, **options: Any) -> None:
        """People first, then what they work with."""
        for house in seed_people():
            seed_tenant(house.id)
            if options["verbosity"] > 0:
                names = ", ".join(f"{title}@{house.slug}.example" for title, _, _ in CAST)
                self.stdout.write(f"{house.name}: {names} (password: {PASSWORD})")
