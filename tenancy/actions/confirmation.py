"""Confirming that an account is in its person's own hands (R-APPR-5)."""

from uuid import UUID

from tenancy.actions import write_audit_entry
from tenancy.actions.people import has_signed_in, hold_members
from tenancy.actions.relations import record_tie
from tenancy.core.errors import Forbidden, NotFound, TenancyError
from tenancy.core.relations import Actors, Closeness, TieKind, has_open_link
from tenancy.core.roles import Scope
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Person
from tenancy.people.dual_control import check_reason
from tenancy.people.relations import awaits_confirmation, find_closeness_to, may_vouch, read_ties
from tenancy.queries import standing_of


class RelatedToPerson(TenancyError):
    """You are related to this person; an administrator who is not confirms them."""

    code = "related-to-person"
    http_status = 403


class NotSignedIn(TenancyError):
    """This person has not set a password yet; until then the link that was seen opens the account."""

    code = "not-signed-in"


class NothingToConfirm(TenancyError):
    """Nobody has seen this person's link since they were confirmed."""

    code = "nothing-to-confirm"


def confirm_person(tenant_id: UUID, person_id: UUID, *, by: UUID, reason: str) -> None:
    """Confirm that the account is in its person's own hands, after somebody saw the link for its password.
    Audited. Outermost verb: owns the transaction.

    Who awaits it acts here from then on. An administrator who gave them the role may say so too, with a
    reason; the two stay related, and so does whoever saw the link, until one who is not confirms them.
    Raises NotFound, InvalidInput, Forbidden for whoever does not administer, RelatedToPerson (403),
    NotSignedIn (409) while the link could still be used, and NothingToConfirm (409).
    """
    with tenant_transaction(tenant_id):
        hold_members(tenant_id)
        person = Person.objects.filter(id=person_id, memberships__tenant_id=tenant_id).distinct().first()
        who = standing_of(tenant_id, by)
        if person is None or who is None:
            raise NotFound
        if Scope.ADMIN not in who.scopes:
            raise Forbidden(reason="an administrator confirms people")
        now = database_now()
        if not has_open_link(person_id, read_ties(now), now):
            raise NothingToConfirm
        close = find_closeness_to(who.principal, who.owner, Actors((), (person_id,))) is not Closeness.NONE
        if close:
            if not (awaits_confirmation(person_id) and may_vouch(who.principal, who.owner, person_id)):
                raise RelatedToPerson
            check_reason(reason)
        if not has_signed_in(person):
            raise NotSignedIn
        record_tie(tenant_id, TieKind.CONFIRMED, person_id, by=by)
        _let_act(tenant_id, person, by=by, related=close, reason=reason)


def confirm_by_command(tenant_id: UUID, person: Person, *, reason: str) -> None:
    """Let a person act here who awaits it, by whoever has the shell. Audited; who is related stays so.
    Outermost verb. Raises NothingToConfirm, NotSignedIn, and InvalidInput without a reason."""
    with tenant_transaction(tenant_id):
        hold_members(tenant_id)
        if not awaits_confirmation(person.id):
            raise NothingToConfirm
        check_reason(reason)
        if not has_signed_in(person):
            raise NotSignedIn
        _let_act(tenant_id, person, by=None, related=False, reason=reason)


def _let_act(tenant_id: UUID, person: Person, *, by: UUID | None, related: bool, reason: str) -> None:
    Membership.objects.filter(person_id=person.id, awaits_confirmation=True).update(awaits_confirmation=False)
    write_audit_entry(
        tenant_id, by, verb="person.confirm", object=f"person:{person.id}", before={},
        after={"email": person.email, "related": related}, reason=reason,
    )  # fmt: skip
