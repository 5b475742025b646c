"""The OpenAPI document's door."""

from __future__ import annotations

from threading import Lock

from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.request import Request
from rest_framework.response import Response

_ONE_AT_A_TIME = Lock()


class Document(SpectacularJSONAPIView):
    """The OpenAPI document.

    The generator loads its extensions at first use; two first users at once would find them half loaded.
    """

    permission_classes = []

    def _get_schema_response(self, request: Request) -> Response:
        with _ONE_AT_A_TIME:
            answer: Response = super()._get_schema_response(request)  # type: ignore[no-untyped-call]
            return answer
