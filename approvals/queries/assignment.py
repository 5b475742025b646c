"""Queries of actions on requests other than decisions, in the tenant's context."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from approvals.core.assignment import (
    RESTING,
    AssignmentAction,
    AssignmentRecord,
    asleep_until,
    derive_assignee,
)
from approvals.core.policy import explain_decision_refusal
from approvals.models import Handling, Request
from approvals.queries.people import asked_of, deciders_of, names_of
from tenancy.core.roles import SCOPES, Authority, Role, Scope, scopes_of
from tenancy.models import Membership, Principal
from tenancy.queries import ClockTimestamp, PrincipalAuthority

MOST_COMMENTS = 100
MOST_PEOPLE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment with its author's name."""

    name: str
    at: datetime
    text: str


def handled_of(requests: Iterable[UUID]) -> dict[UUID, list[AssignmentRecord]]:
    """Load the actions on each of these requests, in order, without the texts of comments."""
    found: dict[UUID, list[AssignmentRecord]] = {request: [] for request in requests}
    columns = ("request_id", "kind", "owner", "to", "until")
    rows = Handling.objects.filter(request_id__in=found).order_by("at", "id").values_list(*columns)
    for request, kind, owner, to, until in rows:
        found[request].append(
            AssignmentRecord(kind=AssignmentAction(kind), owner=str(owner), to=str(to or ""), until=until)
        )
    return found


def holders_of(handled: Mapping[UUID, Iterable[AssignmentRecord]]) -> dict[UUID, tuple[UUID, str]]:
    """Return each request's assignee: principal and name; requests without one are left out."""
    held = {request: derive_assignee(done) for request, done in handled.items()}
    names = names_of({UUID(to) for to in held.values() if to})
    return {request: (UUID(to), names.get(UUID(to), "somebody")) for request, to in held.items() if to}


def comments_of(request_id: UUID) -> tuple[Comment, ...]:
    """List the newest comments and reveals of a request, in order."""
    told = (AssignmentAction.COMMENT.value, AssignmentAction.REVEAL.value)
    rows = Handling.objects.filter(request_id=request_id, kind__in=told)
    newest = list(rows.order_by("-at", "-id")[:MOST_COMMENTS])[::-1]
    names = names_of({row.principal for row in newest})
    return tuple(
        Comment(name=names.get(row.principal, "somebody"), at=row.at, text=row.text) for row in newest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPanel:
    """The assignment part of a card: comments, possible assignees, and the end of the reader's snooze."""

    comments: tuple[Comment, ...]
    people: tuple[tuple[UUID, str], ...]
    asleep_until: datetime | None


def desk_of(request: Request, owner: UUID, now: datetime) -> AssignmentPanel:
    """Build the assignment part of one request's card for one reader."""
    handled = handled_of([request.id])[request.id]
    return AssignmentPanel(
        comments=comments_of(request.id),
        people=who_may(request) if request.status == "pending" else (),
        asleep_until=asleep_until(handled, str(owner), now),
    )


def with_snooze_end(rows: QuerySet[Request], owner: str) -> QuerySet[Request]:
    """Annotate each row with `rests_until`, the end of this person's snooze.

    Null or past if the request is not snoozed.
    """
    of_theirs = Handling.objects.filter(
        request_id=OuterRef("id"), owner=owner, kind__in=[kind.value for kind in RESTING]
    )
    return rows.annotate(rests_until=Subquery(of_theirs.order_by("-at", "-id").values("until")[:1]))


def build_not_snoozed_filter() -> Q:
    """Build a filter of rows from `with_snooze_end` for requests that are not snoozed."""
    return Q(rests_until=None) | Q(rests_until__lte=ClockTimestamp())


def who_may(request: Request) -> tuple[tuple[UUID, str], ...]:
    """List the people who may decide a request, ordered by name: principal and name each.

    At most `MOST_PEOPLE`.
    """
    deciding = [role.value for role in Role if Scope.DECIDE in SCOPES[role]]
    members: dict[UUID, list[Membership]] = {}
    found = Membership.objects.filter(role__in=deciding, person__is_active=True, awaits_confirmation=False)
    for member in found.order_by("role"):
        members.setdefault(member.person_id, []).append(member)
    people = list(
        Principal.objects.filter(kind="person", owner_id__in=members)
        .annotate(name=F("owner__name"))
        .order_by("name", "id")
    )
    deciders = deciders_of(_build_principal_authority(one, members[one.owner_id]) for one in people)
    asked = asked_of(request)
    may = [
        (one.id, str(one.name)) for one in people if explain_decision_refusal(asked, deciders[one.id]) is None
    ]
    return tuple(may[:MOST_PEOPLE])


def _build_principal_authority(principal: Principal, members: Sequence[Membership]) -> PrincipalAuthority:
    """Build the authority that a person has by these memberships."""
    roles = tuple(Role(member.role) for member in members)
    return PrincipalAuthority(
        principal=principal.id, owner=principal.owner_id, roles=roles, scopes=scopes_of(roles),
        authorities=tuple(Authority(tuple(m.queues), m.max_amount, m.max_risk) for m in members),
    )  # fmt: skip
