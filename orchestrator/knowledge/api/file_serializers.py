"""The request and response bodies of a run's files."""

import base64
import binascii
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from orchestrator.core.files.workspace import MOST_FILES
from tenancy.core.errors import InvalidInput
from tenancy.rest.serializer_fields import (
    FormattedCharField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)


class FileBody(StrictSerializer):
    """A file that a task comes with: its text, or its bytes in base64."""

    one_of = (("text",), ("base64",))

    path = StrictCharField(max_length=240, trim_whitespace=False)
    text = StrictCharField(required=False, allow_blank=True, trim_whitespace=False)
    base64 = FormattedCharField(
        r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$", required=False
    )


@extend_schema_field({"type": "string", "pattern": "^[0-9a-f]{64}$"})
class DigestField(serializers.CharField):
    """A SHA-256 in hex."""


class FileRow(serializers.Serializer[Any]):
    """A file, by the SHA-256 of its bytes."""

    path = serializers.CharField()
    digest = DigestField()
    size = serializers.IntegerField()


class RevisionRow(serializers.Serializer[Any]):
    """A state that the files were in. Revision 0 is what was handed in."""

    number = serializers.IntegerField()
    cause = serializers.ChoiceField(choices=["handed", "changed", "restored"])
    digest = DigestField()
    summary = serializers.CharField()
    at = serializers.DateTimeField()


class FilesField(serializers.Serializer[Any]):
    """A run's files at a revision; `digest` is that of all names and contents."""

    revision = serializers.IntegerField()
    digest = DigestField()
    files = FileRow(many=True)
    revisions = RevisionRow(many=True)


class RevisionQuery(StrictSerializer):
    """Which revision; the newest where none is named."""

    revision = StrictIntegerField(min_value=0, max_value=100_000, required=False)


class DiffQuery(StrictSerializer):
    """From which revision to which; what was handed in and the newest where none is named."""

    before = StrictIntegerField(min_value=0, max_value=100_000, required=False, default=0)
    after = StrictIntegerField(min_value=0, max_value=100_000, required=False)


def files_of(given: list[dict[str, Any]]) -> dict[str, bytes]:
    """Return the files of a task's body by path.

    Raises: InvalidInput.
    """
    found: dict[str, bytes] = {}
    if len(given) > MOST_FILES:
        raise _build_input_error("", f"at most {MOST_FILES} files are taken")
    for at, one in enumerate(given):
        if ("text" in one) == ("base64" in one):
            raise _build_input_error(f"/{at}", "a file has either a text or base64")
        if one["path"] in found:
            raise _build_input_error(f"/{at}/path", "this path was given before")
        found[one["path"]] = (
            one["text"].encode() if "text" in one else _decode_base64_content(at, one["base64"])
        )
    return found


def _decode_base64_content(at: int, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _build_input_error(f"/{at}/base64", "this is no base64") from None


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": f"/files{pointer}", "code": "not-allowed", "detail": detail}])
