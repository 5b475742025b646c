"""`manage.py ledger verify`: every balance equals its ledger (R-BUDGET-3)."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

import orjson
from django.core.management.base import BaseCommand, CommandError

from orchestrator.queries.crossing import tenant_of_run
from orchestrator.runtime.proving import Proof, prove_ledger
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """Proves ledgers: entries intact, lines and tranches equal to their sums, every reservation settled,
    released or in flight. Ends with status 1 where one is not."""

    help = "Prove that every balance equals its ledger."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One verb."""
        verify = parser.add_subparsers(dest="verb", required=True).add_parser("verify")
        what = verify.add_mutually_exclusive_group()
        what.add_argument("--tenant", metavar="SLUG", help="one tenant's; all of them without")
        what.add_argument("--run", type=UUID, help="one run's")
        verify.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prove and tell."""
        proofs = {house.slug: prove_ledger(house.id, options["run"]) for house in _houses(options)}
        if options["json"]:
            self.stdout.write(orjson.dumps(_document(proofs), option=orjson.OPT_INDENT_2).decode())
        else:
            for slug, proof in proofs.items():
                for fault in proof.faults:
                    self.stdout.write(f"{slug}: {fault}")
                self.stdout.write(f"{slug}: {proof.runs} runs, {len(proof.faults)} faults")
        if any(proof.faults for proof in proofs.values()):
            raise CommandError("a ledger is not what was written")


def _houses(options: dict[str, Any]) -> list[Tenant]:
    if options["run"] is not None:
        owner = tenant_of_run(options["run"])
        if owner is None:
            raise CommandError(f"there is no run {options['run']}")
        return [Tenant.objects.get(id=owner)]
    if options["tenant"] is None:
        return list(Tenant.objects.order_by("slug"))
    found = tenant_by_slug(options["tenant"])
    if found is None:
        raise CommandError(f"there is no tenant {options['tenant']!r}")
    return [found]


def _document(proofs: dict[str, Proof]) -> dict[str, Any]:
    return {
        "whole": not any(proof.faults for proof in proofs.values()),
        "tenants": [
            {
                "tenant": slug,
                "runs": proof.runs,
                "faults": [
                    {"where": fault.where, "column": fault.column, "sentence": fault.sentence}
                    for fault in proof.faults
                ],
            }
            for slug, proof in proofs.items()
        ],
    }
