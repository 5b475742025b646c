"""`manage.py security review`: the review of a run that a safety rule closed, by the shell (R-BUDGET-12)."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from orchestrator.reviews.actions.safety_acknowledgement import record_safety_review
from tenancy.core.errors import NotFound
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Writes down what a review found; no administrator reviews their own run."""

    help = "Write down the review of a run that a safety rule closed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One verb."""
        verb = parser.add_subparsers(dest="verb", required=True).add_parser("review")
        verb.add_argument("run", type=UUID)
        verb.add_argument("--tenant", metavar="SLUG", required=True, help="whose")
        verb.add_argument("--finding", required=True, help="what was found: it stands in the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Raises CommandError where there is no such run to review, or nothing was found."""
        house, finding = tenant_by_slug(options["tenant"]), options["finding"].strip()[:500]
        if house is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        if not finding:
            raise CommandError("say what was found: --finding")
        try:
            record_safety_review(house.id, options["run"], by=None, finding=finding)
        except NotFound:
            raise CommandError(f"no safety rule closed a run {options['run']} of {house.slug}") from None
        self.stderr.write("the review is written down")
