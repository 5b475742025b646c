"""The request and response bodies of tool servers, HTTP tools, private places and secrets."""

from typing import Any

from rest_framework import serializers

from orchestrator.core.tools.destinations import A_SECRET
from orchestrator.core.tools.registration import Admission, DeclarationBesideOperation, HttpDeclaration
from tenancy.rest.serializer_fields import (
    URL,
    FormattedCharField,
    Moment,
    PydanticField,
    StrictCharField,
    StrictSerializer,
)

SERVER = r"^[a-z][a-z0-9_]{0,30}$"
NO_SECRET = rf"^$|{A_SECRET}"
PLACE = r"^(\[[0-9A-Fa-f:.]{2,60}\]|[A-Za-z0-9._-]{1,253}):[0-9]{1,5}$"


class ServerRow(serializers.Serializer[Any]):
    """A tool server. `tools` counts what it offers by state; `fault` says why it was not looked at last."""

    name = serializers.CharField()
    kind = serializers.CharField()
    address = serializers.CharField()
    origin = serializers.CharField()
    secret = serializers.CharField(allow_blank=True)
    protocol = serializers.CharField(allow_blank=True)
    server = serializers.CharField(allow_blank=True)
    looked_at = serializers.DateTimeField(allow_null=True)
    fault = serializers.CharField(allow_blank=True)
    tools = serializers.DictField(child=serializers.IntegerField())


class OfferedField(serializers.Serializer[Any]):
    """A server's tool. `seen` is the digest of what it is now; `before` and `after` are what differs from
    what was admitted."""

    tool = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    state = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    seen = serializers.CharField(allow_blank=True)
    admitted = serializers.CharField(allow_blank=True)
    since = serializers.DateTimeField()
    warnings = serializers.ListField(child=serializers.CharField())
    definition = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)
    before = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)
    after = serializers.DictField(child=serializers.JSONField(allow_null=True), allow_null=True)


class ServerField(ServerRow):
    """A tool server with all it offers."""

    offered = serializers.ListField(child=OfferedField())


class ServerBody(StrictSerializer):
    """A server to add: `http` with its URL, or `stdio` with the name of one of the operator's commands."""

    slug = FormattedCharField(SERVER)
    kind = serializers.ChoiceField(choices=["http", "stdio"])
    address = StrictCharField(max_length=2_000)
    secret = FormattedCharField(NO_SECRET, required=False, default="")
    secret_header = FormattedCharField(r"^[A-Za-z0-9_-]{1,64}$", required=False, default="Authorization")
    reason = StrictCharField(max_length=500)


class AdmitBody(StrictSerializer):
    """Which tool is admitted as which definition, and how it may be used (docs/tools.md). `admission` may say
    `error_means_no_effect`: an answer that says that a call failed says that it changed nothing."""

    tool = StrictCharField(max_length=128)
    seen = StrictCharField(max_length=64)
    admission = PydanticField(Admission)
    reason = StrictCharField(max_length=500)


class QuarantineBody(StrictSerializer):
    """Which tool goes back, and why."""

    tool = StrictCharField(max_length=128)
    reason = StrictCharField(max_length=500)


class HttpToolBody(StrictSerializer):
    """A tool that is one request (docs/tools.md); `declaration` may say `error_means_no_effect` as an
    admission does."""

    declaration = PydanticField(HttpDeclaration)
    reason = StrictCharField(max_length=500)


class HttpOperationBody(StrictSerializer):
    """A tool that is an operation of an OpenAPI document, which fills in what the declaration leaves out."""

    declaration = PydanticField(DeclarationBesideOperation)
    openapi = serializers.DictField(child=serializers.JSONField(allow_null=True))
    operation = StrictCharField(max_length=200)
    server = StrictCharField(max_length=2_000, required=False)
    reason = StrictCharField(max_length=500)


class PlacesField(serializers.Serializer[Any]):
    """The private places in force; version 0 is no list at all."""

    places = serializers.ListField(child=serializers.CharField())
    version = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)


class PlacesBody(StrictSerializer):
    """Every private `host:port` that tools may reach, and why."""

    places = serializers.ListField(child=FormattedCharField(PLACE), max_length=100)
    reason = StrictCharField(max_length=500)


class SecretRow(serializers.Serializer[Any]):
    """A secret: its name, and the one origin it is sent to."""

    name = serializers.CharField()
    origin = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    renews_at = serializers.CharField(allow_blank=True)


class RenewalBody(StrictSerializer):
    """Where a new secret is had: an OAuth 2 token endpoint, and what it is asked with."""

    url = FormattedCharField(URL)
    client_id = StrictCharField(max_length=500)
    client_secret = StrictCharField(max_length=4_000, trim_whitespace=False)
    refresh_token = StrictCharField(max_length=4_000, required=False, allow_blank=True, default="")
    scope = StrictCharField(max_length=500, required=False, allow_blank=True, default="")


class SecretBody(StrictSerializer):
    """A secret to keep. One that expires may say where a new one is had."""

    expires_at = Moment(required=False, allow_null=True, default=None)
    renewal = RenewalBody(required=False, allow_null=True, default=None)

    name = FormattedCharField(A_SECRET)
    value = FormattedCharField(r"^[ -~]{1,8192}$")
    origin = StrictCharField(max_length=300)
    reason = StrictCharField(max_length=500)
