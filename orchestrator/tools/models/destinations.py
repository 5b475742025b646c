"""Destinations of a tenant's bundled tools and the content they store: lists, mail drafts, corpora."""

from django.contrib.postgres.search import SearchVectorField
from django.db import models

from tenancy.models import TenantOwned


class Outside(TenantOwned):
    """One version of a tenant's rules for one kind of destination; the newest of a `kind` counts.
    Append-only.
    """

    kind = models.CharField(max_length=12)
    version = models.PositiveIntegerField()
    body = models.JSONField()
    reason = models.CharField(max_length=500)
    by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="outside_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "kind", "version"], name="outside_once"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["web", "databases", "mail", "models"]), name="outside_kind_known"
            ),
        ]


class MailDraft(TenantOwned):
    """A message that a run has drafted, once per key. It was not sent. Append-only."""

    run_id = models.UUIDField()
    key = models.CharField(max_length=64)
    body = models.JSONField()
    sha256 = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="maildraft_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "run_id", "key"], name="maildraft_once"),
        ]


class CorpusDocument(TenantOwned):
    """One version of a document of a corpus. Append-only, so that cited content can always be shown.

    The newest version counts; a document whose newest version is `removed` does not exist.
    """

    corpus = models.CharField(max_length=64)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    language = models.CharField(max_length=16)
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    removed = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, blank=True)
    by = models.UUIDField(null=True)
    at = models.DateTimeField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="corpusdocument_tenant_id"),
            models.UniqueConstraint(
                fields=["tenant", "corpus", "name", "version"], name="corpusdocument_once"
            ),
        ]


class CorpusPassage(TenantOwned):
    """A part of a document's text, from `start` to `end` (characters), as it is searched. Append-only."""

    document = models.ForeignKey(
        CorpusDocument, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    number = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    heading = models.CharField(max_length=200, blank=True)
    text = models.TextField()
    search = SearchVectorField()

    class Meta(TenantOwned.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="corpuspassage_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "document", "number"], name="corpuspassage_once"),
        ]
