"""Views of the run list that a person keeps (R-UI-2). All inside the tenant's context."""

from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Lower

from orchestrator.models import SavedView
from tenancy.core.errors import NotFound


def views_of(principal: UUID) -> "QuerySet[SavedView]":
    """What this person keeps, by name."""
    return SavedView.objects.filter(principal=principal).order_by(Lower("name"), "id")


def view_of(principal: UUID, view_id: UUID) -> SavedView:
    """One view of this person's own. Raises NotFound, for anybody else's too."""
    found = views_of(principal).filter(id=view_id).first()
    if found is None:
        raise NotFound
    return found
