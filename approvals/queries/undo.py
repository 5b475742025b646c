"""Read deferred approvals, their due times and the tenant's undo window. Call in the tenant's context."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef

from approvals.core.undo import Fate
from approvals.models import Deferral, Request, UndoWindow
from approvals.queries.people import AuthorizedPrincipal, names_of
from tenancy.core.roles import Scope

MOST_OFFERS: Final = 5
MOST_VERSIONS: Final = 20
STANDS: Final = Fate.STANDS.value
# One round trip, even if nothing is ever deferred: a decision needs no further query for it.
MOMENT = """
SELECT clock_timestamp(),
       coalesce((SELECT seconds FROM approvals_undowindow ORDER BY version DESC LIMIT 1), 0),
       d.id, d.principal, d.owner, d.effective_at
  FROM (SELECT 1) AS here
  LEFT JOIN approvals_deferral d ON d.request_id = %s AND d.fate = 'stands'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredApproval:
    """An approval of one request that has not taken effect."""

    id: UUID
    principal: UUID
    owner: UUID
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The database's time, the undo window in seconds and the request's pending deferral.

    An approval made at this moment is deferred by `seconds`. `standing` is None if no deferral is pending.
    """

    at: datetime
    seconds: int
    standing: DeferredApproval | None


def moment_of(request_id: UUID) -> Moment:
    """Return the moment at which a decision on a request is made. Call it with the request's row locked."""
    with connection.cursor() as cursor:
        cursor.execute(MOMENT, (request_id,))
        row = cursor.fetchone()
    assert row is not None  # noqa: S101 - a left join to one row has one
    at, seconds, found, principal, owner, effective_at = row
    standing = None
    if found is not None:
        standing = DeferredApproval(id=found, principal=principal, owner=owner, effective_at=effective_at)
    return Moment(at=at, seconds=seconds, standing=standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """The newest deferred approval of a request, with the approver's name. `because` is why it lapsed."""

    id: UUID
    name: str
    principal: UUID
    owner: UUID
    kind: str
    effective_at: datetime
    fate: Fate
    because: str = ""

    @property
    def stands(self) -> bool:
        """Return whether the approval is still to take effect."""
        return self.fate is Fate.STANDS

    @property
    def has_lapsed(self) -> bool:
        """Return whether the approval lapsed without taking effect."""
        return self.fate is Fate.LAPSED


def may_undo(who: AuthorizedPrincipal, kept: DeferredApproval | Deferred) -> bool:
    """Return whether an actor may undo a deferred approval.

    The principal that approved may, another principal of the same person with the decide scope may (a key
    that only reads may not), and an administrator may.
    """
    own = kept.principal == who.principal or (kept.owner == who.owner and Scope.DECIDE in who.scopes)
    return own or Scope.ADMIN in who.scopes


def deferred_of(requests: Iterable[UUID]) -> dict[UUID, Deferred]:
    """Return the newest deferral of each of these requests. Requests without a deferral are left out."""
    found = Deferral.objects.filter(request_id__in=list(requests)).defer("arguments", "reason")
    newest = found.order_by("request_id", "-at", "-id").distinct("request_id")
    rows = {row.request_id: row for row in newest}
    names = names_of({row.principal for row in rows.values()})
    return {
        request: Deferred(
            id=row.id, name=names.get(row.principal, "somebody"), principal=row.principal,
            owner=row.owner, kind=row.kind, effective_at=row.effective_at, fate=Fate(row.fate),
            because=row.ended_because,
        )
        for request, row in rows.items()
    }  # fmt: skip


def kept_back() -> Exists:
    """Build a condition on requests: a deferral of the request is pending."""
    return Exists(Deferral.objects.filter(request_id=OuterRef("id"), fate=STANDS))


def offered_to(owner: UUID) -> list[Request]:
    """Return the requests with a pending deferral by this person, the newest deferral first."""
    theirs = Request.objects.filter(deferrals__owner=owner, deferrals__fate=STANDS)
    return list(theirs.order_by("-deferrals__at", "-id")[:MOST_OFFERS])


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowNow:
    """The undo window in seconds, 0 if approvals cannot be undone. Version 0 is the shipped default."""

    version: int = 0
    seconds: int = 0
    row: UndoWindow | None = None


def window_now() -> WindowNow:
    """Return the undo window that applies to the next approval."""
    row = UndoWindow.objects.order_by("-version").first()
    return WindowNow() if row is None else WindowNow(version=row.version, seconds=row.seconds, row=row)


def list_undo_window_versions() -> list[UndoWindow]:
    """List the latest versions of the undo window, the newest first."""
    return list(UndoWindow.objects.order_by("-version")[:MOST_VERSIONS])
