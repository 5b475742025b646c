"""The OpenAPI document's door."""

from __future__ import annotations

from threading import Lock

from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.api.stream import SessionAuthentication
from tenancy.core.roles import Scope
from tenancy.rest.authentication import KeyAuthentication
from tenancy.rest.permissions import make_scope_permission

_ONE_AT_A_TIME = Lock()


class Document(SpectacularJSONAPIView):
    """The OpenAPI document, for whoever reads: a key, or a person who is signed in (R-SEC-11).

    The generator loads its extensions at first use; two first users at once would find them half loaded.
    """

    authentication_classes = [KeyAuthentication, SessionAuthentication]
    permission_classes = [make_scope_permission(Scope.READ)]

    def _get_schema_response(self, request: Request) -> Response:
        with _ONE_AT_A_TIME:
            answer: Response = super()._get_schema_response(request)  # type: ignore[no-untyped-call]
            return answer
