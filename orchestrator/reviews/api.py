"""The API of the review queue: items that runs ask people to review, and the answers (R-TOOL-19)."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import F
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orchestrator.core.approval.review_item import FINDINGS, LONGEST_NOTE, SEVERITIES, STATES
from orchestrator.knowledge.api.memory import EvidenceRow
from orchestrator.reviews.actions.review_queue import answer_review, release_review, take_review
from orchestrator.reviews.queries.reviews import ReviewState, build_review_item, item_of, list_review_items
from tenancy.core.roles import Scope
from tenancy.db.tenant_context import tenant_transaction
from tenancy.rest.api_helpers import get_caller, paginate_rows, post_once, uuid_or_none
from tenancy.rest.api_view import APIView
from tenancy.rest.idempotency import StoredResponse
from tenancy.rest.permissions import make_scope_permission
from tenancy.rest.serializer_fields import (
    PageQuery,
    StrictCharField,
    StrictSerializer,
    page_of,
    validate_input,
)


class ReviewFilters(PageQuery):
    """Only those that stand so, or in this queue."""

    state = serializers.ChoiceField(choices=STATES, required=False)
    queue = StrictCharField(max_length=64, required=False)


class ReviewRow(serializers.Serializer[Any]):
    """What a run asks people to look at, and what was done with it last."""

    id = serializers.UUIDField()
    run = serializers.UUIDField()
    queue = serializers.CharField()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    subject = serializers.CharField()
    reason = serializers.CharField()
    evidence = EvidenceRow(many=True)
    sha256 = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES, help_text="waiting, taken by somebody, or answered.")
    by = serializers.UUIDField(allow_null=True, help_text="Who has taken it, or answered it.")
    finding = serializers.ChoiceField(choices=FINDINGS, allow_null=True)
    note = serializers.CharField(allow_blank=True)
    asked_at = serializers.DateTimeField()
    said_at = serializers.DateTimeField(allow_null=True)


class ReviewAnswerBody(StrictSerializer):
    """A finding and what there is to say about it. It approves no call."""

    finding = serializers.ChoiceField(choices=FINDINGS)
    note = StrictCharField(max_length=LONGEST_NOTE)


class ReviewNothing(StrictSerializer):
    """Nothing is to be said."""


class Reviews(APIView):
    """What runs ask people to look at, newest first."""

    permission_classes = [make_scope_permission(Scope.READ)]

    @extend_schema(
        operation_id="list_reviews", parameters=[ReviewFilters], responses=page_of(ReviewRow, "ReviewPage")
    )
    def get(self, request: Request) -> Response:
        """A page of them."""
        filters = validate_input(ReviewFilters, request.query_params)
        with tenant_transaction(get_caller(request).tenant):
            found = list_review_items(filters.get("state", ""), filters.get("queue", "")).annotate(
                created_at=F("at")
            )
            return paginate_rows(request, found, lambda row: _serialize_review_item(build_review_item(row)))


class ReviewOne(APIView):
    """One item."""

    permission_classes = [make_scope_permission(Scope.READ)]

    @extend_schema(operation_id="get_review", responses=ReviewRow)
    def get(self, request: Request, review_id: str) -> Response:
        """It, as it stands. Raises NotFound."""
        with tenant_transaction(get_caller(request).tenant):
            return Response(ReviewRow(_serialize_review_item(item_of(uuid_or_none(review_id)))).data)


class ReviewActionView(APIView):
    """Something done with one item."""

    permission_classes = [make_scope_permission(Scope.DECIDE)]
    body: ClassVar[type[StrictSerializer]] = ReviewNothing

    def post(self, request: Request, review_id: str) -> Response:
        """Do it. Raises NotFound, NotYours, ReviewRefused."""
        said = validate_input(self.body, request.data)
        item = uuid_or_none(review_id)

        def act() -> StoredResponse:
            who = get_caller(request)
            return StoredResponse(
                200, ReviewRow(_serialize_review_item(self.act(who.tenant, item, who.principal, said))).data
            )

        return post_once(request, act)

    def act(self, house: UUID, item: UUID | None, by: UUID, said: dict[str, Any]) -> ReviewState:
        """Perform the action of this view on the item."""
        raise NotImplementedError


@extend_schema_view(
    post=extend_schema(operation_id="take_review", request=ReviewNothing, responses=ReviewRow)
)
class Take(ReviewActionView):
    """Make it one's own: nobody else answers it until it is given back."""

    def act(self, house: UUID, item: UUID | None, by: UUID, said: dict[str, Any]) -> ReviewState:
        """Take the item."""
        return take_review(house, item, by=by)


@extend_schema_view(
    post=extend_schema(operation_id="release_review", request=ReviewNothing, responses=ReviewRow)
)
class Release(ReviewActionView):
    """Give it back."""

    def act(self, house: UUID, item: UUID | None, by: UUID, said: dict[str, Any]) -> ReviewState:
        """Release the item."""
        return release_review(house, item, by=by)


@extend_schema_view(
    post=extend_schema(operation_id="answer_review", request=ReviewAnswerBody, responses=ReviewRow)
)
class AnswerOne(ReviewActionView):
    """Say what was found, once."""

    body = ReviewAnswerBody

    def act(self, house: UUID, item: UUID | None, by: UUID, said: dict[str, Any]) -> ReviewState:
        """Answer the item."""
        return answer_review(house, item, by=by, finding=said["finding"], note=said["note"])


def _serialize_review_item(found: ReviewState) -> dict[str, Any]:
    row = found.row
    return {
        "id": row.id, "run": row.run_id, "queue": row.queue, "severity": row.severity,
        "subject": row.subject, "reason": row.reason, "sha256": row.sha256, "state": found.state,
        "evidence": [one.model_dump() for one in found.evidence], "by": found.holder,
        "finding": found.finding, "note": found.note, "asked_at": row.at, "said_at": found.at,
    }  # fmt: skip
