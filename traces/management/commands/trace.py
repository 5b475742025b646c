"""`manage.py trace verify|export`, and what a floor above adds (R-TRACE-3, R-TRACE-4)."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from tenancy.core.errors import InterlockError
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug
from traces.exports.jsonl import export_trace, verify_file
from traces.models import Record
from traces.ports import get_runs_port
from traces.subcommands import get_subcommands
from traces.verification import VerificationFault, verify_run, verify_tenant


class Command(BaseCommand):
    """Verifies and exports traces. `verify` names every fault and then ends with status 1."""

    help = "Verify or export the traces of runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Two verbs of our own, and those that were registered."""
        found = parser.add_subparsers(dest="verb", required=True)
        verify = found.add_parser("verify", help="prove that a trace is what was written")
        what = verify.add_mutually_exclusive_group(required=True)
        what.add_argument("run", nargs="?", type=UUID)
        what.add_argument("--all", action="store_true", help="every run of every tenant")
        what.add_argument("--file", type=Path, metavar="F", help="an export; no database is needed")
        verify.add_argument("--tenant", metavar="SLUG", help="with --all: this tenant's runs only")
        exporting = found.add_parser("export", help="write a run's trace as JSON lines")
        exporting.add_argument("run", type=UUID)
        exporting.add_argument("-o", "--output", type=Path, metavar="F", help="instead of standard output")
        for name, verb in get_subcommands().items():
            added = found.add_parser(name, help=verb.help)
            added.add_argument("run", type=UUID)
            verb.add_arguments(added)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it; a refusal of ours is a sentence, not a traceback."""
        try:
            self._perform(options)
        except (InterlockError, OSError) as refused:
            raise CommandError(str(refused)) from None

    def _perform(self, options: dict[str, Any]) -> None:
        if options["verb"] == "verify":
            self._say(self._verify_traces(options))
        elif options["verb"] == "export":
            with tenant_transaction(house_of(options["run"]).id):
                self._export(options["run"], options["output"])
        else:
            with tenant_transaction(house_of(options["run"]).id):
                for line in get_subcommands()[options["verb"]].perform(options["run"], options):
                    self.stdout.write(line)

    def _verify_traces(self, options: dict[str, Any]) -> Iterator[tuple[str, list[VerificationFault]]]:
        if options["file"] is not None:
            yield str(options["file"]), verify_file(options["file"])
        elif options["run"] is not None:
            with tenant_transaction(house_of(options["run"]).id):
                yield str(options["run"]), verify_run(options["run"])
        else:
            for house in list_tenants(options["tenant"]):
                with tenant_transaction(house.id):
                    yield from ((str(run_id), faults) for run_id, faults in verify_tenant())

    def _say(self, verified: Iterable[tuple[str, list[VerificationFault]]]) -> None:
        whole = broken = 0
        for name, faults in verified:
            broken, whole = broken + bool(faults), whole + (not faults)
            for fault in faults:
                self.stdout.write(f"{name}: {fault}")
        self.stdout.write(f"{whole} whole, {broken} not")
        if broken:
            raise CommandError("a trace is not what was written")

    def _export(self, run_id: UUID, output: Path | None) -> None:
        if output is not None:
            with output.open("wb") as file:
                file.writelines(export_trace(run_id))
        else:
            # Bytes as they are: a text stream would translate line ends on some systems.
            out = getattr(self.stdout, "buffer", None) or sys.stdout.buffer
            out.writelines(export_trace(run_id))
            out.flush()


def list_tenants(slug: str | None) -> list[Tenant]:
    """One tenant by its slug, or all. Raises CommandError."""
    if slug is None:
        return list(Tenant.objects.order_by("slug"))
    found = tenant_by_slug(slug)
    if found is None:
        raise CommandError(f"there is no tenant {slug!r}")
    return [found]


def house_of(run_id: UUID) -> Tenant:
    """The tenant of a run. Raises CommandError.

    Asked tenant by tenant: an operator's command may be slow, a way around row-level security may not be.
    """
    for house in list_tenants(None):
        with tenant_transaction(house.id):
            if Record.objects.filter(run_id=run_id).exists() or get_runs_port().heads(run_id):
                return house
    raise CommandError(f"there is no run {run_id}")
