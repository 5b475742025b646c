"""Saved views of the run list, per person (R-UI-2). Call it inside the tenant's context."""

from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Lower

from orchestrator.runs.models.saved_view import SavedView
from tenancy.core.errors import NotFound


def views_of(principal: UUID) -> "QuerySet[SavedView]":
    """Return the views that this person saved, by name."""
    return SavedView.objects.filter(principal=principal).order_by(Lower("name"), "id")


def view_of(principal: UUID, view_id: UUID) -> SavedView:
    """Return one view of this person.

    Raises: NotFound, also for another person's view.
    """
    found = views_of(principal).filter(id=view_id).first()
    if found is None:
        raise NotFound
    return found
