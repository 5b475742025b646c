"""Reads of a tenant's corpora: what there is, what a search finds, what a passage says. Inside the tenant's
context.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from orchestrator.tools.models.destinations import CorpusDocument, CorpusPassage
from tenancy.db.tenant_context import current_tenant

# The newest versions that are not taken out, and the words of the question in each of their languages: with
# all of them, else with any of them unless some are forbidden.
_SEARCH = """
WITH newest AS (
  SELECT DISTINCT ON (name) id, name, version, title, language, removed FROM orchestrator_corpusdocument
   WHERE tenant_id = %(tenant)s AND corpus = %(corpus)s ORDER BY name, version DESC),
live AS (SELECT * FROM newest WHERE NOT removed),
asked AS (
  SELECT language, q.every, CASE WHEN q.every::text LIKE '%%!%%' THEN q.every
         ELSE replace(q.every::text, ' & ', ' | ')::tsquery END AS any
    FROM (SELECT DISTINCT language FROM live) l,
         LATERAL (SELECT websearch_to_tsquery(l.language::regconfig, %(query)s) AS every) q)
SELECT d.id, d.name, d.version, d.title, p.number, p.heading, p.start, p."end",
       ts_headline(d.language::regconfig, p.text, a.any,
                   'StartSel="", StopSel="", MaxWords=60, MinWords=25, MaxFragments=1') AS snippet,
       round(ts_rank_cd(p.search, a.any, 32)::numeric, 4)::text AS score
  FROM live d JOIN asked a ON a.language = d.language
  JOIN orchestrator_corpuspassage p
    ON p.tenant_id = %(tenant)s AND p.document_id = d.id AND p.search @@ a.any
 ORDER BY (p.search @@ a.every) DESC, ts_rank_cd(p.search, a.any, 32) DESC, d.name, p.number
 LIMIT %(limit)s"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that was found; `start` and `end` are its place in the document (characters)."""

    document: UUID
    name: str
    version: int
    title: str
    number: int
    heading: str
    start: int
    end: int
    snippet: str
    score: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusNow:
    """A corpus, with how many documents it has now."""

    corpus: str
    documents: int
    changed_at: datetime


def newest_of(corpus: str, name: str) -> CorpusDocument | None:
    """The newest version of a document, one that was taken out too."""
    return CorpusDocument.objects.filter(corpus=corpus, name=name).order_by("-version").first()


def search_corpus(corpus: str, query: str, limit: int) -> list[Hit]:
    """The passages with the words of the question, best first."""
    with connection.cursor() as cursor:
        values = {"tenant": current_tenant(), "corpus": corpus, "query": query, "limit": limit}
        cursor.execute(_SEARCH, values)
        names = [column[0] for column in cursor.description]
        return [
            Hit(
                **{
                    ("document" if name == "id" else name): value
                    for name, value in zip(names, row, strict=True)
                }
            )
            for row in cursor.fetchall()
        ]


def passage_of(corpus: str, name: str, version: int, number: int) -> CorpusPassage | None:
    """A passage of a version, its document with it; versions that were replaced too."""
    rows = CorpusPassage.objects.select_related("document").filter(
        document__corpus=corpus, document__name=name, document__version=version, number=number
    )
    return rows.first()


def corpora_now() -> list[CorpusNow]:
    """Every corpus with a document in it, by name."""
    found: dict[str, list[CorpusDocument]] = {}
    for row in _list_newest_documents(CorpusDocument.objects.all()):
        found.setdefault(row.corpus, []).append(row)
    return [
        CorpusNow(
            corpus=corpus, documents=sum(not row.removed for row in rows),
            changed_at=max(row.at for row in rows),
        )
        for corpus, rows in sorted(found.items())
    ]  # fmt: skip


def documents_of(corpus: str) -> list[CorpusDocument]:
    """The documents of a corpus as they are now, by name, without their text."""
    return [
        row for row in _list_newest_documents(CorpusDocument.objects.filter(corpus=corpus)) if not row.removed
    ]


def versions_of_document(corpus: str, name: str) -> list[CorpusDocument]:
    """Every version of a document, newest first."""
    return list(CorpusDocument.objects.filter(corpus=corpus, name=name).order_by("-version"))


def passages_now(document: CorpusDocument) -> list[CorpusPassage]:
    """A version's passages, in order."""
    return list(CorpusPassage.objects.filter(document=document).defer("search").order_by("number"))


def _list_newest_documents(rows: Any) -> list[CorpusDocument]:
    return list(rows.order_by("corpus", "name", "-version").distinct("corpus", "name").defer("text"))
