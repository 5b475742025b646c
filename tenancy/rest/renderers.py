"""JSON Lines and event streams beside JSON, for doors that hand out more than one document."""

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


class EventStreamRenderer(JSONLinesRenderer):
    """Lets a client ask for `text/event-stream`; what a door refuses is still a problem document."""

    media_type = "text/event-stream"
    format = "sse"
