"""The request and response bodies of retries."""

from typing import Any

from rest_framework import serializers

from tenancy.rest.serializer_fields import (
    Cursor,
    PageQuery,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)


class RetryBody(StrictSerializer):
    """After which record the retry begins, and why. Without a record: after the newest checkpoint."""

    record = StrictIntegerField(required=False, allow_null=True, min_value=0, max_value=2**53)
    reason = StrictCharField(max_length=500)


class CheckpointQuery(PageQuery):
    """Which checkpoints."""

    cursor = Cursor(r"^[0-9]{1,15}$", required=False)


class RefusedField(serializers.Serializer[Any]):
    """Why no retry may begin there now: a code and a sentence."""

    code = serializers.CharField()
    detail = serializers.CharField()


class CheckpointRow(serializers.Serializer[Any]):
    """A record of a run at which a retry may begin, but for `refused`. `next` is what it would do first, in
    words."""

    record = serializers.IntegerField()
    at = serializers.DateTimeField()
    node = serializers.CharField()
    next = serializers.CharField()
    retryable = serializers.BooleanField()
    refused = RefusedField(allow_null=True)
