"""Keeping views of the run list under names of one's own (R-UI-2). They decide nothing: no audit has them."""

from typing import Final
from uuid import UUID

from django.db.models import Value
from django.db.models.functions import Lower

from orchestrator.core.common.errors import NameTaken
from orchestrator.runs.models.saved_view import SavedView
from orchestrator.runs.queries.run_list import Filters
from orchestrator.runs.queries.saved_views import view_of, views_of
from tenancy.core.errors import InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction

MOST: Final = 30
LONGEST_NAME: Final = 60
LONGEST_QUERY: Final = 2_000


def save_view(tenant_id: UUID, filters: Filters, *, name: str, by: UUID, first: bool = False) -> SavedView:
    """Keep these filters under a name that `by` has given to no other view; `first`: the bare address of the
    list opens them. Outermost verb: owns the transaction. Raises InvalidInput, NameTaken."""
    name, query = _parse_view_name(name), filters.query
    if filters.plain:
        raise _build_input_error("/query", "These are all runs: set a filter first, or open a view.")
    if len(query) > LONGEST_QUERY:
        raise _build_input_error(
            "/query", f"The address of these filters is longer than {LONGEST_QUERY} characters."
        )
    with tenant_transaction(tenant_id):
        _lock_saved_views(by)
        _check_name_available(by, name)
        if views_of(by).count() >= MOST:
            raise _build_input_error("/name", f"You keep {MOST} views already; remove one first.")
        if first:
            views_of(by).filter(first=True).update(first=False)
        return SavedView.objects.create(
            tenant_id=tenant_id, principal=by, name=name, query=query, first=first, at=database_now()
        )


def rename_view(tenant_id: UUID, view_id: UUID, *, name: str, by: UUID) -> SavedView:
    """Call a view otherwise. Outermost verb: owns the transaction. Raises NotFound, InvalidInput,
    NameTaken."""
    with tenant_transaction(tenant_id):
        view = view_of(by, view_id)
        name = _parse_view_name(name)
        _lock_saved_views(by)
        _check_name_available(by, name, but=view_id)
        views_of(by).filter(id=view_id).update(name=name)
        view.name = name
        return view


def open_first(tenant_id: UUID, view_id: UUID, *, first: bool, by: UUID) -> SavedView:
    """Let the bare address of the list open this view, or (`first` False) all runs again. Outermost verb:
    owns the transaction. Raises NotFound."""
    with tenant_transaction(tenant_id):
        view = view_of(by, view_id)
        _lock_saved_views(by)
        views_of(by).filter(first=True).update(first=False)
        views_of(by).filter(id=view_id).update(first=first)
        view.first = first
        return view


def remove_view(tenant_id: UUID, view_id: UUID, *, by: UUID) -> SavedView:
    """Forget a view; the runs stay. Outermost verb: owns the transaction. Raises NotFound."""
    with tenant_transaction(tenant_id):
        view = view_of(by, view_id)
        views_of(by).filter(id=view_id).delete()
        return view


def _lock_saved_views(by: UUID) -> None:
    """Until the transaction ends nobody else changes this person's views: two windows, one default."""
    take_advisory_lock(f"views:{by}")


def _check_name_available(by: UUID, name: str, *, but: UUID | None = None) -> None:
    # As the index compares: `iexact` takes other letters for the same.
    found = views_of(by).alias(low=Lower("name")).filter(low=Lower(Value(name))).first()
    if found is not None and found.id != but:
        raise NameTaken(name=name)


def _parse_view_name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise _build_input_error("/name", f"One line of at most {LONGEST_NAME} characters.")
    return name


def _build_input_error(pointer: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": "invalid", "detail": detail}])
