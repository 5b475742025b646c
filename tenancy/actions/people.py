"""People of a tenant, as its administrators manage them (R-SEC-1, R-SEC-2, R-SEC-6)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction

from tenancy.actions import add_member, add_person, audit, principal_of, remove_member
from tenancy.actions.relations import record_tie
from tenancy.clock import database_now
from tenancy.context import hold, tenant
from tenancy.core.addresses import folded
from tenancy.core.errors import Forbidden, InvalidInput, NotFound, TenancyError
from tenancy.core.news import PERSON_INVITED
from tenancy.core.relations import TieKind, has_open_link
from tenancy.core.roles import Role, Scope
from tenancy.ids import fresh_id
from tenancy.models import Membership, Notice, NoticeMail, Person
from tenancy.queries import standing_of, tenants_of_person
from tenancy.relations import read_ties, relations_of


class LastAdmin(TenancyError):
    """A tenant keeps at least one administrator."""

    code = "last-admin"


class RelatedToPerson(TenancyError):
    """You are related to this person; an administrator who is not confirms them."""

    code = "related-to-person"


class NotSignedIn(TenancyError):
    """This person has not set a password yet; until then the link that was seen opens the account."""

    code = "not-signed-in"


class NothingToConfirm(TenancyError):
    """Nobody has seen this person's link since they were confirmed."""

    code = "nothing-to-confirm"


class Limits(NamedTuple):
    """How far a reviewer's word reaches. No queues: none, `*`: every queue; None and "": no limit."""

    queues: tuple[str, ...] = ()
    max_amount: Decimal | None = None
    max_risk: str = ""


class Invited(NamedTuple):
    """A person with a role here. `new`: they were not known anywhere before, and have no password yet."""

    person: Person
    member: Membership
    new: bool


def invite(tenant_id: UUID, email: str, name: str, role: Role, limits: Limits, *, by: UUID | None) -> Invited:
    """Give somebody a role by their address; made as a person if they are not known. Audited. Outermost verb:
    owns the transaction.

    Who is known elsewhere keeps name and password. Raises InvalidInput where they have the role already, and
    where the address is not plain ASCII.
    """
    with tenant(tenant_id):
        _hold(tenant_id)
        person = Person.objects.filter(email=folded(email)).first()
        new = person is None
        person = person or add_person(email, name)
        try:
            with transaction.atomic():
                member = add_member(tenant_id, person, role, by=by, **limits._asdict())
        except IntegrityError:
            detail = f"{email} has the role {role.value} already."
            raise InvalidInput(errors=[{"pointer": "/role", "code": "taken", "detail": detail}]) from None
        return Invited(person, member, new)


def change_limits(
    tenant_id: UUID, member_id: UUID, limits: Limits, *, by: UUID | None, reason: str
) -> Membership:
    """Set how far the word of one membership reaches; audited. Outermost verb. Raises NotFound."""
    with tenant(tenant_id):
        _hold(tenant_id)
        member = Membership.objects.filter(id=member_id).first()
        if member is None:
            raise NotFound
        before = _limits(member)
        member.queues, member.max_amount, member.max_risk = (
            list(limits.queues), limits.max_amount, limits.max_risk,
        )  # fmt: skip
        if (after := _limits(member)) != before:
            member.save(update_fields=["queues", "max_amount", "max_risk"])
            audit(
                tenant_id, by, verb="member.change", object=f"member:{member.id}", before=before, after=after,
                reason=reason,
            )  # fmt: skip
        return member


def remove_role(tenant_id: UUID, member_id: UUID, *, by: UUID | None, reason: str) -> Person:
    """Take one role from a person; audited. Their keys lose what it brought. Outermost verb.

    Raises NotFound, and LastAdmin for the only administrator.
    """
    with tenant(tenant_id):
        _hold(tenant_id)
        member = Membership.objects.select_related("person").filter(id=member_id).first()
        if member is None:
            raise NotFound
        role = Role(member.role)
        others = Membership.objects.filter(role=Role.ADMIN.value, person__is_active=True).exclude(
            id=member.id
        )
        if role is Role.ADMIN and not others.exists():
            raise LastAdmin
        remove_member(tenant_id, member.person, role, by=by, reason=reason)
        return member.person


def may_get_link(tenant_id: UUID, person: Person) -> bool:
    """Whether an administrator of this tenant may hand out a link that sets the person's password: only to
    somebody who never signed in and belongs nowhere else. Whoever belongs elsewhere could be taken over."""
    if person.has_usable_password() or person.last_login is not None or not person.is_active:
        return False
    return tenants_of_person(person.id) == [tenant_id]


def show_link(tenant_id: UUID, person: Person, *, by: UUID) -> None:
    """Write down that somebody is shown the link, before they are: who sees it can sign in as the person, so
    that the two are related until an administrator unrelated to both confirms the person. Outermost verb."""
    with tenant(tenant_id):
        record_tie(tenant_id, TieKind.LINK_SEEN, person.id, by=by)
        _audit_link(tenant_id, person, by, "shown")


def note_printed_link(tenant_id: UUID, person: Person) -> None:
    """Write down that a command printed the link; it relates nobody. Outermost verb."""
    with tenant(tenant_id):
        _audit_link(tenant_id, person, None, "printed")


def mail_link(tenant_id: UUID, person: Person, *, by: UUID, origin: str) -> None:
    """Send the link to the person's own address, where nobody else sees it. `origin` is where the console is
    if the settings do not say. Outermost verb."""
    with tenant(tenant_id):
        now, notice = database_now(), fresh_id()
        Notice.objects.create(
            id=notice, tenant_id=tenant_id, kind=PERSON_INVITED, subject=f"link:{notice}",
            data={"origin": origin}, at=now,
        )  # fmt: skip
        NoticeMail.objects.create(
            id=fresh_id(), tenant_id=tenant_id, notice_id=notice, person_id=person.id, next_at=now
        )
        _audit_link(tenant_id, person, by, "mailed")


def confirm_person(tenant_id: UUID, person_id: UUID, *, by: UUID, reason: str) -> None:
    """Confirm that the account is in its person's own hands, after somebody saw the link for its password.
    Audited. Outermost verb: owns the transaction.

    Raises NotFound, Forbidden for whoever does not administer, RelatedToPerson (403), NotSignedIn (409) while
    the link could still be used, and NothingToConfirm (409).
    """
    with tenant(tenant_id):
        _hold(tenant_id)
        person = Person.objects.filter(id=person_id, memberships__tenant_id=tenant_id).distinct().first()
        who = standing_of(tenant_id, by)
        if person is None or who is None:
            raise NotFound
        if Scope.ADMIN not in who.scopes:
            raise Forbidden(reason="an administrator confirms people")
        now = database_now()
        if not has_open_link(person_id, read_ties(now), now):
            raise NothingToConfirm
        if person_id in relations_of(who.principal, who.owner).related:
            raise RelatedToPerson
        if may_get_link(tenant_id, person):
            raise NotSignedIn
        record_tie(tenant_id, TieKind.CONFIRMED, person_id, by=by)
        audit(
            tenant_id, by, verb="person.confirm", object=f"person:{person_id}", before={},
            after={"email": person.email}, reason=reason,
        )  # fmt: skip


def _audit_link(tenant_id: UUID, person: Person, by: UUID | None, how: str) -> None:
    audit(
        tenant_id, by, verb="person.link", object=f"person:{person.id}", before={},
        after={"email": person.email, "link": how},
    )  # fmt: skip


def note_sign_in(person: Person, *, by: Sequence[str], refused: str = "") -> None:
    """Write down that somebody came in, by what, or why they did not; in each of their tenants. Opens each
    tenant's transaction itself."""
    verb = "person.refuse" if refused else "person.sign_in"
    _note(person, verb, {"by": list(by)}, reason=refused)


def note_tie(person: Person, *, provider: str, account: str) -> None:
    """Write down that an account of a provider signs somebody in from now on; in each of their tenants. Opens
    each tenant's transaction itself."""
    _note(person, "person.tie", {"provider": provider, "account": account})


def _note(person: Person, verb: str, after: Mapping[str, Any], *, reason: str = "") -> None:
    for house in tenants_of_person(person.id):
        with tenant(house):
            audit(
                house, principal_of(house, person).id, verb=verb, object=f"person:{person.id}", before={},
                after=after, reason=reason,
            )  # fmt: skip


def _hold(tenant_id: UUID) -> None:
    """One change of the members at a time: two administrators must not remove each other at once."""
    hold(f"members:{tenant_id}")


def _limits(member: Membership) -> dict[str, Any]:
    amount = member.max_amount
    return {
        "queues": list(member.queues),
        "max_amount": None if amount is None else str(amount),
        "max_risk": member.max_risk,
    }
