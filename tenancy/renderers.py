"""JSON Lines beside JSON, for doors that hand out files."""

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import JSONRenderer


class JSONLinesRenderer(JSONRenderer):
    """Lets a client ask for `application/jsonl`; what a door refuses is still a problem document."""

    media_type = "application/jsonl"
    format = "jsonl"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """A refusal as JSON; the lines themselves never come here."""
        body: bytes = super().render(data, "application/json", renderer_context)
        return body
