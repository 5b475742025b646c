"""Keeping a tenant's documents for search: versions, each cut into passages (R-TOOL-19)."""

import re
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.contrib.postgres.search import SearchVector
from django.db.models import Value as Given

from orchestrator.core.files.chunking import (
    LANGUAGES,
    LARGEST,
    MOST,
    PassagePart,
    passages_of,
    plain_document,
)
from orchestrator.knowledge.queries.corpora import newest_of
from orchestrator.publishing.actions.versions import hold_registry
from orchestrator.tools.models.destinations import CorpusDocument, CorpusPassage
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,118}[a-z0-9])?")
CORPUS = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document to keep, under its name in a corpus."""

    corpus: str
    name: str
    title: str
    text: str
    language: str = "english"


def put_document(tenant_id: UUID, new: NewDocument, *, by: UUID | None, reason: str = "") -> CorpusDocument:
    """Keep a document, or a new version of one, for searches from now on; the same again is the version that
    stands. Outermost verb: owns the transaction. Raises InvalidInput."""
    text = plain_document(new.text)
    _check_new_document(new, text)
    parts = passages_of(text)
    if len(parts) > MOST:
        raise _build_input_error("/text", f"It comes to more than {MOST} passages.")
    digest = sha256(text.encode()).hexdigest()
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        before = newest_of(new.corpus, new.name)
        same = before is not None and (before.sha256, before.title, before.language, before.removed) == (
            digest, new.title, new.language, False,
        )  # fmt: skip
        if before is not None and same:
            return before
        made = CorpusDocument.objects.create(
            tenant_id=tenant_id, corpus=new.corpus, name=new.name, title=new.title, language=new.language,
            version=before.version + 1 if before is not None else 1, text=text, sha256=digest,
            reason=reason[:500], by=by, at=database_now(),
        )  # fmt: skip
        _store_passages(tenant_id, made, parts)
        _audit_document_change(tenant_id, made, by, reason)
        return made


def remove_document(tenant_id: UUID, corpus: str, name: str, *, by: UUID | None, reason: str) -> None:
    """Take a document out of searches; what was cited of it can still be shown. Outermost verb: owns the
    transaction. Raises NotFound."""
    with tenant_transaction(tenant_id):
        hold_registry(tenant_id)
        before = newest_of(corpus, name)
        if before is None or before.removed:
            raise NotFound
        made = CorpusDocument.objects.create(
            tenant_id=tenant_id, corpus=corpus, name=name, title=before.title, language=before.language,
            version=before.version + 1, text="", sha256=sha256(b"").hexdigest(), removed=True,
            reason=reason[:500], by=by, at=database_now(),
        )  # fmt: skip
        _audit_document_change(tenant_id, made, by, reason)


def _store_passages(tenant_id: UUID, document: CorpusDocument, parts: tuple[PassagePart, ...]) -> None:
    """The passages with their words. The title counts most, then the heading."""
    config = document.language
    CorpusPassage.objects.bulk_create(
        [
            CorpusPassage(
                tenant_id=tenant_id, document=document, number=part.number, start=part.start, end=part.end,
                heading=part.heading[:200], text=part.text,
                search=SearchVector(Given(document.title), weight="A", config=config)
                + SearchVector(Given(part.heading), weight="B", config=config)
                + SearchVector(Given(part.text), weight="D", config=config),
            )
            for part in parts
        ],
        batch_size=200,
    )  # fmt: skip


def _audit_document_change(tenant_id: UUID, document: CorpusDocument, by: UUID | None, reason: str) -> None:
    write_audit_entry(
        tenant_id, by, verb="corpus.remove" if document.removed else "corpus.put",
        object=f"document:{document.corpus}/{document.name}",
        before={"version": document.version - 1},
        after={"version": document.version, "sha256": document.sha256}, reason=reason,
    )  # fmt: skip


def _check_new_document(new: NewDocument, text: str) -> None:
    if not CORPUS.fullmatch(new.corpus):
        raise _build_input_error(
            "/corpus", "Lower-case letters, digits, - and _, at most 64, a letter first."
        )
    if not NAME.fullmatch(new.name):
        raise _build_input_error("/name", "Lower-case letters, digits, and . - _ between them, at most 120.")
    if not new.title.strip() or len(new.title) > 200 or not new.title.isprintable():
        raise _build_input_error("/title", "One line of at most 200 characters.")
    if new.language not in LANGUAGES:
        raise _build_input_error("/language", f"One of {', '.join(LANGUAGES)}.")
    if not text or len(text) > LARGEST:
        raise _build_input_error("/text", f"A text of at most {LARGEST} characters.")


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "not-allowed", "detail": detail}])
