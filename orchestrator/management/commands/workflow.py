"""`manage.py workflow compile|publish|show|list|retire` (R-GRAPH-4)."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.core.compiler.errors import CompileFailed
from orchestrator.publishing.actions.workflows import compile_source, publish_source, retire_workflow
from orchestrator.publishing.models import WorkflowVersion
from orchestrator.publishing.queries.workflows import document_of, in_force, list_all_workflows, versions_of
from orchestrator.workflow_yaml import format_workflow_yaml
from tenancy.core.errors import NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """The same verbs as the page and the API."""

    help = "Compile, publish, show, list and retire workflows of a tenant."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Five verbs; all take --tenant."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        for name in ("compile", "publish"):
            verb = verbs.add_parser(name)
            verb.add_argument("file", help="a YAML file; - for standard input")
            verb.add_argument("--reason", default="", help="for the audit log")
        show = verbs.add_parser("show", help="a published version as YAML")
        show.add_argument("slug")
        show.add_argument("--number", type=int, help="which version; the one in force where none is said")
        verbs.add_parser("list")
        retire = verbs.add_parser("retire")
        retire.add_argument("slug")
        retire.add_argument("--number", type=int, required=True)
        retire.add_argument("--reason", required=True)
        for verb in verbs.choices.values():
            verb.add_argument("--tenant", metavar="SLUG", required=True, help="whose")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Faults go to standard error, one a line, and end the command with 1."""
        house = tenant_by_slug(options["tenant"])
        if house is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        try:
            getattr(self, f"_{options['verb']}")(house, options)
        except CompileFailed as error:
            for found in error.data["faults"]:
                self.stderr.write(fault_line(options["file"], found))
            raise CommandError(str(error)) from None
        except NotFound:
            raise CommandError(f"there is no workflow {options['slug']!r} of that version") from None

    def _compile(self, house: Tenant, options: dict[str, Any]) -> None:
        graph = compile_source(house.id, _read(options["file"]))
        self.stdout.write(f"{graph.digest}  {graph.spec.slug}  tier {graph.tier}  {len(graph.nodes)} nodes")

    def _publish(self, house: Tenant, options: dict[str, Any]) -> None:
        version, new = publish_source(house.id, _read(options["file"]), by=None, reason=options["reason"])
        said = "published" if new else "stands already"
        self.stdout.write(f"{version.slug} v{version.version}  {version.digest}  {said}")

    def _show(self, house: Tenant, options: dict[str, Any]) -> None:
        with tenant_transaction(house.id):
            found = versions_of(options["slug"])
            number = options["number"]
            version = in_force(found) if number is None else _find_version(found, number)
            if version is None:
                raise NotFound
            self.stdout.write(format_workflow_yaml(document_of(version)), ending="")

    def _list(self, house: Tenant, options: dict[str, Any]) -> None:
        with tenant_transaction(house.id):
            for listed in list_all_workflows():
                row = listed.row
                words = (row.slug, f"v{row.version}", f"tier {row.tier}", listed.state, f"{listed.runs} runs")
                self.stdout.write("  ".join((*words, row.digest)))

    def _retire(self, house: Tenant, options: dict[str, Any]) -> None:
        version = retire_workflow(
            house.id, options["slug"], options["number"], by=None, reason=options["reason"]
        )
        self.stdout.write(f"{version.slug} v{version.version} retired")


def fault_line(file: str, found: dict[str, Any]) -> str:
    """A fault as compilers write it: file, line, number, rule, place, sentence."""
    place = found["edge"] or found["node"]
    where = f"{file}:{found.get('line') or 1}: {found['number']} {found['rule']}: "
    return f"{where}{f'{place}: ' if place else ''}{found['sentence']}"


def _find_version(versions: list[WorkflowVersion], number: int) -> WorkflowVersion | None:
    return next((version for version in versions if version.version == number), None)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {error}") from None
