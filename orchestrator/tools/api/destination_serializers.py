"""The request and response bodies of outbound destinations and of corpora."""

from typing import Any

from rest_framework import serializers

from orchestrator.core.files.chunking import LANGUAGES, LARGEST
from orchestrator.core.tools.destinations import Database, MailServer
from tenancy.rest.serializer_fields import (
    URL,
    FormattedCharField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)

HOST = r"^[A-Za-z0-9._:-]{1,253}$"


class VersionField(serializers.Serializer[Any]):
    """Which version is in force; 0 is that nobody has said anything."""

    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class WebField(VersionField):
    """The addresses that tools read without asking a person."""

    allow = serializers.ListField(child=serializers.CharField())


class WebBody(StrictSerializer):
    """Every address: one page, all below with /* at the end, any query with ?* after that."""

    allow = serializers.ListField(child=FormattedCharField(URL), max_length=200)
    reason = StrictCharField(max_length=500)


class DatabaseBody(StrictSerializer):
    """A PostgreSQL database; reader and writer are names of secrets of the form user:password, kept for the
    origin postgresql://host:port/database. Each account is the user that its secret has to name; without
    one it is the user that it names now."""

    judged_by = Database

    name = StrictCharField(max_length=32)
    host = FormattedCharField(HOST)
    port = StrictIntegerField(min_value=1, max_value=65_535, required=False)
    database = StrictCharField(max_length=63)
    reader = StrictCharField(max_length=64)
    writer = StrictCharField(max_length=64, required=False, allow_blank=True)
    reader_account = StrictCharField(max_length=254, required=False, allow_blank=True)
    writer_account = StrictCharField(max_length=254, required=False, allow_blank=True)
    tls = serializers.ChoiceField(choices=["verified", "required", "off"], required=False)


class DatabasesField(VersionField):
    """The databases in force."""

    databases = serializers.ListField(child=DatabaseBody())


class DatabasesBody(StrictSerializer):
    """Every database that tools may ask, and why."""

    databases = serializers.ListField(child=DatabaseBody(), max_length=20)
    reason = StrictCharField(max_length=500)


class MailServerBody(StrictSerializer):
    """A mail server; without a host the operator's. `secret` names one of the form user:password, kept for
    smtp://host:port; `account` is the user that it has to name, without one the user that it names now.
    `domains` null: any recipient."""

    judged_by = MailServer

    host = FormattedCharField(rf"^$|{HOST}", required=False)
    port = StrictIntegerField(min_value=1, max_value=65_535, required=False)
    tls = serializers.ChoiceField(choices=["starttls", "implicit", "off"], required=False)
    secret = StrictCharField(max_length=64, required=False, allow_blank=True)
    account = StrictCharField(max_length=254, required=False, allow_blank=True)
    sender = StrictCharField(max_length=254)
    name = StrictCharField(max_length=100, required=False, allow_blank=True)
    domains = serializers.ListField(
        child=StrictCharField(max_length=253), max_length=100, allow_null=True, required=False
    )


class MailField(VersionField):
    """The mail server in force."""

    server = MailServerBody(allow_null=True)


class MailBody(StrictSerializer):
    """The mail server, and why."""

    server = MailServerBody()
    reason = StrictCharField(max_length=500)


class CorpusRow(serializers.Serializer[Any]):
    """A corpus, with how many documents it has."""

    corpus = serializers.CharField()
    documents = serializers.IntegerField()
    changed_at = serializers.DateTimeField()


class DocumentRow(serializers.Serializer[Any]):
    """A document's newest version."""

    corpus = serializers.CharField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    language = serializers.CharField()
    sha256 = serializers.CharField()
    added_at = serializers.DateTimeField()


class DocumentField(DocumentRow):
    """It with its text, as it is searched and cited."""

    text = serializers.CharField()


class DocumentBody(StrictSerializer):
    """A document to keep: plain text or Markdown."""

    corpus = FormattedCharField(r"^[a-z][a-z0-9_-]{0,63}$")
    name = FormattedCharField(r"^[a-z0-9]([a-z0-9._-]{0,118}[a-z0-9])?$")
    title = StrictCharField(max_length=200)
    text = StrictCharField(max_length=LARGEST, trim_whitespace=False)
    language = serializers.ChoiceField(choices=list(LANGUAGES), required=False, default="english")
    reason = StrictCharField(max_length=500, required=False, allow_blank=True, default="")
