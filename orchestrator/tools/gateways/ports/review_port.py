"""The port by which a tool puts something before people; the verb is registered where verbs are known."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from orchestrator.core.approval.review_item import Severity
from orchestrator.reviews.models import ReviewItem

_ASKERS: "dict[str, AskReview]" = {}


class AskReview(Protocol):
    """Writes an item down, once a key, inside the tenant's transaction. Raises ReviewRefused."""

    def __call__(
        self,
        tenant_id: UUID,
        run: UUID,
        *,
        key: str,
        queue: str,
        severity: Severity,
        subject: str,
        reason: str,
        facts: Sequence[str],
    ) -> ReviewItem: ...


def register_review_asker(ask: AskReview) -> None:
    """The verb that writes items down."""
    _ASKERS["review"] = ask


def review_asker() -> AskReview:
    """The verb that was registered."""
    return _ASKERS["review"]
