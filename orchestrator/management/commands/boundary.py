"""`manage.py boundary list|show|check|publish|retire`: the boundaries of a tenant (R-GRAPH-11)."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.core.compiler.boundary_change import read_boundary
from orchestrator.policies.actions.boundaries import (
    preview_boundary,
    publish_read_boundary,
    read_boundary_text,
    retire_boundary,
)
from orchestrator.policies.queries.boundaries import (
    boundaries_now,
    boundaries_retired,
    boundary_document,
    boundary_versions,
    in_force_of,
)
from orchestrator.workflow_yaml import format_workflow_yaml
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """The same verbs as the page and the API."""

    help = "List, show, check, publish and retire boundaries of a tenant."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Five verbs; all take --tenant."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list")
        show = verbs.add_parser("show", help="a version as YAML")
        show.add_argument("slug")
        show.add_argument("--number", type=int, help="which version; the one in force where none is said")
        for name, what in (("check", "say what it would widen"), ("publish", "make it the newest version")):
            verb = verbs.add_parser(name, help=what)
            verb.add_argument("file", help="a YAML file; - for standard input")
        retire = verbs.add_parser("retire", help="take a version out of choice")
        retire.add_argument("slug")
        retire.add_argument("--number", type=int, required=True)
        for name in ("publish", "retire"):
            verbs.choices[name].add_argument("--reason", required=True, help="for the audit log")
        for verb in verbs.choices.values():
            verb.add_argument("--tenant", metavar="SLUG", required=True, help="whose")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. Raises CommandError that names each value that is refused."""
        house = tenant_by_slug(options["tenant"])
        if house is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        try:
            getattr(self, f"_{options['verb']}")(house, options)
        except InvalidInput as error:
            faults = (f"{one['pointer'][1:]}: {one['detail']}" for one in error.data["errors"])
            raise CommandError("; ".join(faults)) from None
        except NotFound:
            raise CommandError(f"there is no boundary {options['slug']!r} of that version") from None

    def _list(self, house: Tenant, _options: dict[str, Any]) -> None:
        with tenant_transaction(house.id):
            for one in boundaries_now():
                tools = ", ".join(grant.name for grant in one.boundary.tools) or "no tool"
                self.stdout.write(f"{one.row.slug}  v{one.row.version}  {tools}")
            for one in boundaries_retired():
                self.stdout.write(f"{one.row.slug}  v{one.row.version}  retired")

    def _show(self, house: Tenant, options: dict[str, Any]) -> None:
        with tenant_transaction(house.id):
            rows = boundary_versions(options["slug"])
            number = options["number"] or (in_force_of(rows) or rows[0]).version
            row = next((one for one in rows if one.version == number), None)
            if row is None:
                raise NotFound
            self.stdout.write(format_workflow_yaml(boundary_document(row)), ending="")

    def _check(self, house: Tenant, options: dict[str, Any]) -> None:
        found = preview_boundary(house.id, _document(options["file"]))
        for line in found.weaker or ("It lets runs do nothing more.",):
            self.stdout.write(line)

    def _publish(self, house: Tenant, options: dict[str, Any]) -> None:
        boundary = read_boundary(_document(options["file"]))
        done = publish_read_boundary(house.id, boundary, expected=None, by=None, reason=options["reason"])
        said = "published" if done.new else "stands already"
        self.stdout.write(f"{done.version.slug} v{done.version.version}  {said}")

    def _retire(self, house: Tenant, options: dict[str, Any]) -> None:
        row = retire_boundary(house.id, options["slug"], options["number"], by=None, reason=options["reason"])
        self.stdout.write(f"{row.slug} v{row.version} retired")


def _document(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {error}") from None
    return read_boundary_text(text)
