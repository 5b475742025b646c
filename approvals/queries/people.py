"""Names of people and keys, and their authority to decide. All in the tenant's context."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from approvals.core.policy import Decider, RequestFacts
from approvals.models import Request
from tenancy.core.roles import Authority, Scope
from tenancy.models import Principal
from tenancy.people.relations import Relations, relations_by_principal


class AuthorizedPrincipal(Protocol):
    """A principal with authority in the tenant: a member at a page, or an authority as read."""

    @property
    def principal(self) -> UUID: ...
    @property
    def owner(self) -> UUID: ...
    @property
    def scopes(self) -> tuple[Scope, ...]: ...
    @property
    def authorities(self) -> tuple[Authority, ...]: ...


def asked_of(request: Request) -> RequestFacts:
    """Build the properties of a request that the rules check."""
    return RequestFacts(
        kind=request.kind, queue=request.queue, risk=request.risk, amount=request.amount,
        has_amount=request.has_amount, submitter=str(request.submitter),
        submitter_owner=str(request.submitter_owner), retriers=tuple(map(str, request.retriers)),
        retrier_owners=tuple(map(str, request.retrier_owners)), sealed=request.sealed,
    )  # fmt: skip


def decider_of(who: AuthorizedPrincipal, at: datetime | None = None) -> Decider:
    """Build the properties of a principal that the rules check, at a moment or now."""
    return deciders_of([who], at)[who.principal]


def deciders_of(several: Iterable[AuthorizedPrincipal], at: datetime | None = None) -> dict[UUID, Decider]:
    """Build the properties that the rules check for each principal; relations are read once."""
    standings = {who.principal: who for who in several}
    found = relations_by_principal({who.principal: who.owner for who in standings.values()}, at)
    return {principal: _build_decider(who, found[principal]) for principal, who in standings.items()}


def _build_decider(who: AuthorizedPrincipal, found: Relations) -> Decider:
    sets: Mapping[str, frozenset[UUID]] = {
        "people": found.people, "keys": found.keys, "related": found.related,
        "related_keys": found.related_keys,
    }  # fmt: skip
    return Decider(
        principal=str(who.principal), owner=str(who.owner),
        scopes=tuple(scope.value for scope in who.scopes), authorities=who.authorities,
        **{name: frozenset(map(str, ids)) for name, ids in sets.items()},
    )  # fmt: skip


def names_of(principals: Iterable[UUID]) -> dict[UUID, str]:
    """Load the display names of people and keys."""
    found = Principal.objects.filter(id__in=list(principals)).select_related("owner")
    return {
        one.id: one.owner.name if one.kind == "person" else f"key {one.label} of {one.owner.name}"
        for one in found
    }
