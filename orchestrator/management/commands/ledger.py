"""`manage.py ledger verify`: every balance equals its ledger (R-BUDGET-3). `manage.py ledger correct`: the
calls of a wrong price are charged at the right one (R-BUDGET-15)."""

from argparse import ArgumentParser
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from django.core.management.base import BaseCommand, CommandError

from orchestrator.spending.actions.price_corrections import (
    Correction,
    apply_price_correction,
    preview_price_correction,
)
from orchestrator.spending.queries.mispriced_calls import WrongPrice
from orchestrator.tenants.queries.cross_tenant import tenant_of_run
from orchestrator.worker.effects.ledger_audit import AuditResult, prove_ledger
from tenancy.core.errors import InterlockError
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug
from traces.core.canonical import format_decimal


class Command(BaseCommand):
    """Proves ledgers: entries intact, lines and tranches equal to their sums, every reservation settled,
    released or in flight; ends with status 1 where one is not. Corrects wrong prices, run by run."""

    help = "Prove that every balance equals its ledger, or correct a wrong price."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Two verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser("verify", help="prove that every balance equals its ledger")
        what = verify.add_mutually_exclusive_group()
        what.add_argument("--tenant", metavar="SLUG", help="one tenant's; all of them without")
        what.add_argument("--run", type=UUID, help="one run's")
        verify.add_argument("--json", action="store_true")
        correct = verbs.add_parser("correct", help="charge the calls of a wrong price at the one in force")
        correct.add_argument("--tenant", metavar="SLUG", required=True)
        wrong = correct.add_mutually_exclusive_group(required=True)
        wrong.add_argument("--model", metavar="PROVIDER:MODEL")
        wrong.add_argument("--tool", metavar="NAME")
        correct.add_argument("--price", metavar="VERSION", required=True, help="the wrong one")
        correct.add_argument("--reason", required=True)
        correct.add_argument("--apply", action="store_true", help="do it; without, only look")

    def handle(self, *args: Any, **options: Any) -> None:
        """Translate."""
        (self._correct if options["verb"] == "correct" else self._verify)(options)

    def _correct(self, options: dict[str, Any]) -> None:
        """All runs, stretch by stretch, each run whole; stopped half-way it goes on when started again."""
        house, wrong = _houses({**options, "run": None})[0], _wrong(options)
        after: UUID | None = None
        runs = calls = 0
        delta = Decimal(0)
        while True:
            found = _stretch(house, wrong, options, after)
            for one in found.runs:
                self.stdout.write(f"{one.run}: {one.calls} calls, {format_decimal(one.delta)} US$")
            runs, calls, delta = runs + len(found.runs), calls + found.calls, delta + found.delta
            if (after := found.beyond) is None:
                break
        done = "corrected" if options["apply"] else "would be corrected (--apply does it)"
        self.stdout.write(f"{calls} calls of {runs} runs {done}, {format_decimal(delta)} US$ in all")

    def _verify(self, options: dict[str, Any]) -> None:
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


def _wrong(options: dict[str, Any]) -> WrongPrice:
    if options["tool"] is not None:
        return WrongPrice(tool=options["tool"], version=options["price"])
    provider, colon, model = options["model"].partition(":")
    if not (provider and colon and model):
        raise CommandError("--model takes a provider, a colon and the model")
    return WrongPrice(provider=provider, model=model, version=options["price"])


def _stretch(house: Tenant, wrong: WrongPrice, options: dict[str, Any], after: UUID | None) -> Correction:
    try:
        if options["apply"]:
            return apply_price_correction(house.id, wrong, by=None, reason=options["reason"], after=after)
        return preview_price_correction(house.id, wrong, after=after)
    except InterlockError as error:
        detail = " ".join(found["detail"] for found in error.data.get("errors", ()))
        raise CommandError(detail or str(error)) from error


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


def _document(proofs: dict[str, AuditResult]) -> dict[str, Any]:
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
