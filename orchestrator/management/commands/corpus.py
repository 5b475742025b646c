"""`manage.py corpus put|list|remove`: a tenant's documents for search (R-TOOL-19)."""

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from orchestrator.core.files.chunking import LANGUAGES
from orchestrator.knowledge.actions.corpora import NewDocument, put_document, remove_document
from orchestrator.knowledge.queries.corpora import documents_of
from orchestrator.tools.gateways.egress.html_text import read_page
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Tenant
from tenancy.queries import tenant_by_slug


class Command(BaseCommand):
    """The same verbs as the pages and the API."""

    help = "Put, list and take out documents of a tenant's corpus."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Three verbs; all take --tenant and --corpus."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        put = verbs.add_parser("put", help="each file under its own name; the same name makes a new version")
        put.add_argument("files", nargs="+", type=Path, help="plain text, Markdown or HTML, in UTF-8")
        put.add_argument("--language", choices=LANGUAGES, default="english")
        put.add_argument("--reason", default="", help="for the audit log")
        verbs.add_parser("list")
        remove = verbs.add_parser("remove")
        remove.add_argument("name")
        remove.add_argument("--reason", required=True)
        for verb in verbs.choices.values():
            verb.add_argument("--tenant", metavar="SLUG", required=True, help="whose")
            verb.add_argument("--corpus", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it. The first document that is none ends the command; those before it stand."""
        house = tenant_by_slug(options["tenant"])
        if house is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        try:
            getattr(self, f"_{options['verb']}")(house, options)
        except InvalidInput as error:
            said = "; ".join(f"{found['pointer']}: {found['detail']}" for found in error.data["errors"])
            raise CommandError(said) from None
        except NotFound:
            raise CommandError(f"{options['corpus']} has no document {options['name']!r}") from None

    def _put(self, house: Tenant, options: dict[str, Any]) -> None:
        for path in options["files"]:
            new = _document(path, options["corpus"], options["language"])
            made = put_document(house.id, new, by=None, reason=options["reason"])
            self.stdout.write(f"{made.corpus}/{made.name} v{made.version}  {made.sha256[:16]}")

    def _list(self, house: Tenant, options: dict[str, Any]) -> None:
        with tenant_transaction(house.id):
            for one in documents_of(options["corpus"]):
                self.stdout.write(f"{one.name} v{one.version}  {one.language}  {one.title}")

    def _remove(self, house: Tenant, options: dict[str, Any]) -> None:
        remove_document(house.id, options["corpus"], options["name"], by=None, reason=options["reason"])
        self.stdout.write(f"{options['corpus']}/{options['name']} was taken out")


def _document(path: Path, corpus: str, language: str) -> NewDocument:
    """A file as a document: its name and title from the file's. Raises CommandError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {type(error).__name__}") from None
    title = path.stem.replace("-", " ").replace("_", " ")[:200]
    if path.suffix.lower() in {".html", ".htm"}:
        read = read_page(text, "")
        text, title = read.text, read.title[:200] or title
    name = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("._-")[:120]
    return NewDocument(corpus=corpus, name=name, title=title, text=text, language=language)
