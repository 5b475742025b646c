"""POST /approvals/decisions: one decision on several requests (R-APPR-9)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from approvals.actions.bulk import WORDS, Outcome, decide_together
from approvals.api.requests import DeferredField, encode_deferred_approval
from approvals.core.bulk import MOST
from approvals.core.lifecycle import DecisionKind
from tenancy.core.roles import Scope
from tenancy.rest.api_helpers import get_caller, post_once
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    FormattedCharField,
    Id,
    StrictCharField,
    StrictSerializer,
    validate_input,
)


class ShownField(StrictSerializer):
    """A request and the digest of the packet that was looked at."""

    id = Id()
    packet_digest = FormattedCharField(r"^[0-9a-f]{64}$")


class TogetherBody(StrictSerializer):
    """The same word to all of them."""

    decision = serializers.ChoiceField(choices=[kind.value for kind in WORDS])
    reason = StrictCharField(max_length=4_000, required=False, allow_blank=True)
    requests = serializers.ListField(child=ShownField(), min_length=1, max_length=MOST)


class OutcomeField(serializers.Serializer[Any]):
    """What became of one of them; `error` is why the word did not count, `deferred` a yes that counts only
    once it can be taken back no more."""

    id = serializers.UUIDField()
    status = serializers.CharField(allow_null=True)
    error = serializers.DictField(allow_null=True)
    deferred = DeferredField(allow_null=True)


class TogetherField(serializers.Serializer[Any]):
    """What became of each."""

    results = OutcomeField(many=True)


class BulkDecisions(APIView):
    """One word to several requests for the same tool version and risk class, network at most.

    Who may is judged per request.
    """

    permission_classes: list[type[BasePermission]] = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="decide_approvals", request=TogetherBody, responses=TogetherField)
    def post(self, request: HttpRequest) -> Response:
        """Decide each by itself: 200 with what became of each; 422 where they may not stand together."""
        said = validate_input(TogetherBody, request.data)
        return post_once(request, lambda: self._decide_requests(request, said))

    def _decide_requests(self, request: HttpRequest, said: dict[str, Any]) -> StoredResponse:
        who = get_caller(request)
        shown = [(one["id"], one["packet_digest"]) for one in said["requests"]]
        kind = DecisionKind(said["decision"])
        done = decide_together(who.tenant, who.principal, shown, kind, said.get("reason", ""))
        return StoredResponse(200, {"results": [_encode_outcome(one) for one in done]})


def _encode_outcome(one: Outcome) -> dict[str, Any]:
    error = None if one.error is None else {"code": one.error.code, "detail": str(one.error)}
    status = one.request.status if one.request is not None else None
    kept = one.request.kept if one.request is not None else None
    told = None if kept is None else encode_deferred_approval(kept)
    return {"id": str(one.request_id), "status": status, "error": error, "deferred": told}
