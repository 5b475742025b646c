"""Actions with which a tenant's administrators manage its people (R-SEC-1, R-SEC-2, R-SEC-6)."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from tenancy.actions import add_member, add_person, principal_of, remove_member, write_audit_entry
from tenancy.actions.platform_admins import note_platform
from tenancy.actions.relations import record_links_seen_elsewhere, record_tie
from tenancy.core.addresses import normalize_email_address
from tenancy.core.errors import InvalidInput, NotFound, Stale, TenancyError
from tenancy.core.event_kinds import PERSON_INVITED
from tenancy.core.relations import Actors, TieKind
from tenancy.core.roles import SCOPES, Authority, Role, Scope
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from tenancy.models import Membership, Notice, NoticeMail, Person
from tenancy.people.dual_control import DECIDED_ALONE, check_independent
from tenancy.people.first_password import first_password_path
from tenancy.people.member_queries import FRESH_KEY_DOMAIN, acting_admins, another_admin
from tenancy.people.platform_admins import PlatformActor, is_platform_admin
from tenancy.people.queues import check_member_queues
from tenancy.people.relations import (
    must_await_confirmation,
    people_behind,
)
from tenancy.queries import standing_of, tenants_of_person


class LastAdmin(TenancyError):
    """A tenant keeps at least one administrator."""

    code = "last-admin"


class WiderThanYours(TenancyError):
    """Nobody lets a person decide more than they may decide themselves; an administrator who may decide that
    much gives it."""

    code = "wider-than-yours"
    http_status = 403


class LinkRefused(TenancyError):
    """This person has signed in before, or belongs to another tenant too, so no link is handed out."""

    code = "link-refused"


class Limits(NamedTuple):
    """Limits of a reviewer's decisions.

    Empty `queues` means no queue, `*` means every queue; a `max_amount` of None and a `max_risk` of "" mean
    no limit.
    """

    queues: tuple[str, ...] = ()
    max_amount: Decimal | None = None
    max_risk: str = ""


class Invitation(NamedTuple):
    """A person with a role in this tenant.

    `new`: the person was not known in any tenant before and has no password yet.
    """

    person: Person
    member: Membership
    new: bool


def invite_member(
    tenant_id: UUID,
    email: str,
    name: str,
    role: Role,
    limits: Limits,
    *,
    by: UUID | None,
    by_people: Iterable[UUID] = (),
    reason: str = "",
) -> Invitation:
    """Give a role to the person with this e-mail address; create the person if the address is unknown.

    Audited. Outermost verb: owns the transaction.

    A person who is known in another tenant keeps name and password. Everyone who saw the link for that
    password in another tenant is related to the person in this tenant too. Such a person can do nothing in
    this tenant until an administrator confirms the person (`Membership.awaits_confirmation`). `by_people` are
    inviters who do not belong to this tenant.

    Raises:
        InvalidInput: the person already has the role, or the address is not plain ASCII or is that of a key.
        NotIndependent: an administrator's own decision limits would become wider.
        WiderThanYours: the person's decision limits would become wider, and wider than the inviter's.
    """
    if normalize_email_address(email).endswith(FRESH_KEY_DOMAIN):
        raise _build_input_error("email", "invalid", "This is the address of a key, not of a person.")
    with tenant_transaction(tenant_id):
        hold_members(tenant_id)
        person = Person.objects.filter(email=normalize_email_address(email)).first()
        new = person is None
        person = person or add_person(email, name)
        _check_wider(tenant_id, person.id, role, Authority(*limits), by=by, reason=reason)
        inviters = people_behind([by]).get(by, frozenset()) if by is not None else by_people
        awaits = not new and must_await_confirmation(tenant_id, person.id, inviters)
        try:
            with transaction.atomic():
                member = add_member(
                    tenant_id, person, role, awaits_confirmation=awaits, by=by, reason=reason,
                    **limits._asdict(),
                )  # fmt: skip
        except IntegrityError:
            raise _build_input_error("role", "taken", f"{email} has the role {role.value} already.") from None
        if not new:
            record_links_seen_elsewhere(tenant_id, person.id)
        return Invitation(person, member, new)


def change_limits(
    tenant_id: UUID,
    member_id: UUID,
    limits: Limits,
    *,
    by: UUID | None,
    reason: str,
    expected: str | None = None,
) -> Membership:
    """Set the decision limits of one membership; audited. Outermost verb.

    Wider limits relate the giver and the person for a day, as a new role does. An administrator's limits can
    be widened only by an administrator who is not related to that person. `expected` is the tag of the limits
    that the caller looked at.

    Raises: NotFound, Stale, NotIndependent, WiderThanYours; InvalidInput for a name that is not an open
    queue.
    """
    with tenant_transaction(tenant_id):
        hold_members(tenant_id)
        member = Membership.objects.filter(id=member_id).first()
        if member is None:
            raise NotFound
        if expected is not None and expected != limits_tag(member):
            raise Stale
        check_member_queues(limits.queues)
        wanted = Authority(*limits)
        _check_wider(tenant_id, member.person_id, Role(member.role), wanted, by=by, reason=reason)
        before, reached = _format_limits(member), authority_of(member)
        member.queues, member.max_amount, member.max_risk = (
            list(limits.queues), limits.max_amount, limits.max_risk,
        )  # fmt: skip
        if (after := _format_limits(member)) != before:
            member.save(update_fields=["queues", "max_amount", "max_risk"])
            write_audit_entry(
                tenant_id, by, verb="member.change", object=f"member:{member.id}", before=before, after=after,
                reason=reason,
            )  # fmt: skip
        widened = has_decide_scope(Role(member.role)) and authority_of(member).reaches_beyond(reached)
        if by is not None and widened:
            record_tie(tenant_id, TieKind.ROLE_GIVEN, member.person_id, by=by)
        return member


def remove_role(tenant_id: UUID, member_id: UUID, *, by: UUID | None, reason: str) -> Person:
    """Remove one role from a person; audited. Outermost verb.

    The person's keys lose the permissions of that role.

    Raises: NotFound; LastAdmin for the only administrator.
    """
    with tenant_transaction(tenant_id):
        hold_members(tenant_id)
        member = Membership.objects.select_related("person").filter(id=member_id).first()
        if member is None:
            raise NotFound
        role = Role(member.role)
        if role is Role.ADMIN and not acting_admins().exclude(id=member.id).exists():
            raise LastAdmin
        remove_member(tenant_id, member.person, role, by=by, reason=reason)
        return member.person


def deactivate_person(tenant_id: UUID, person_id: UUID, *, by: UUID | None, reason: str) -> Person:
    """Remove every role from a person; each removal is audited. Outermost verb.

    Neither the person nor the keys that the person is responsible for can do anything in this tenant
    afterwards.

    Raises: NotFound; LastAdmin for the only administrator.
    """
    with tenant_transaction(tenant_id):
        hold_members(tenant_id)
        held = list(
            Membership.objects.filter(person_id=person_id).order_by("role").values_list("id", flat=True)
        )
        if not held:
            raise NotFound
        for member_id in held:
            person = remove_role(tenant_id, member_id, by=by, reason=reason)
        return person


def has_signed_in(person: Person) -> bool:
    """Return whether the person has a password or has signed in by other means.

    Either of the two invalidates every first-password link.
    """
    return person.last_login is not None or person.has_usable_password()


def may_get_link(tenant_id: UUID, person: Person) -> bool:
    """Return whether an administrator of this tenant may issue a link that sets the person's password.

    Only a person who has never signed in and belongs to no other tenant may get a link. With a link, a member
    of another tenant or a platform administrator could be taken over.
    """
    if has_signed_in(person) or not person.is_active:
        return False
    return tenants_of_person(person.id) == [tenant_id] and not is_platform_admin(person.id)


def show_link(tenant_id: UUID, person: Person, *, by: UUID) -> None:
    """Record that `by` is about to be shown the link. Outermost verb.

    A viewer of the link can sign in as the person. The viewer and the person are therefore related until an
    administrator who is related to neither confirms the person.
    """
    with tenant_transaction(tenant_id):
        record_tie(tenant_id, TieKind.LINK_SEEN, person.id, by=by)
        note_link(tenant_id, person, by, "shown")


def hand_over_link(tenant_id: UUID, person: Person, *, by: UUID, origin: str) -> str:
    """Mail a first-password link to the person and return "", or return its path if there is no mail.

    A returned path relates its viewer to the person. Outermost verb.

    Raises: LinkRefused.
    """
    if not may_get_link(tenant_id, person):
        raise LinkRefused
    if settings.INTERLOCK_SENDS_MAIL:
        mail_link(tenant_id, person, by=by, origin=origin)
        return ""
    show_link(tenant_id, person, by=by)
    return first_password_path(person)


def note_printed_link(tenant_id: UUID, person: Person) -> None:
    """Record that a command printed the link; no relation results from it. Outermost verb."""
    with tenant_transaction(tenant_id):
        note_link(tenant_id, person, None, "printed")


def mail_link(
    tenant_id: UUID, person: Person, *, by: UUID | None, origin: str, platform: bool = False
) -> None:
    """Mail the link to the person's own address, so that no other person sees it. Outermost verb.

    `origin` is the console's origin, used if the settings do not name one. `platform`: a platform
    administrator requests the mail.
    """
    with tenant_transaction(tenant_id):
        now, notice = database_now(), fresh_id()
        Notice.objects.create(
            id=notice, tenant_id=tenant_id, kind=PERSON_INVITED, subject=f"link:{notice}",
            data={"origin": origin}, at=now,
        )  # fmt: skip
        NoticeMail.objects.create(
            id=fresh_id(), tenant_id=tenant_id, notice_id=notice, person_id=person.id, next_at=now
        )
        note_link(tenant_id, person, by, "mailed", platform=platform)


def note_link(tenant_id: UUID, person: Person, by: UUID | None, how: str, *, platform: bool = False) -> None:
    """Audit the delivery of a first-password link. Joins the tenant's transaction."""
    write_audit_entry(
        tenant_id, by, verb="person.link", object=f"person:{person.id}", before={},
        after={"email": person.email, "link": how}, platform=platform,
    )  # fmt: skip


def note_sign_in(person: Person, *, by: Sequence[str], refused: str = "") -> None:
    """Record a sign-in and its methods, or the reason for which a sign-in was refused.

    The record is written in each of the person's tenants, and in the platform's log for a platform
    administrator. Opens each tenant's transaction itself.
    """
    verb = "person.refuse" if refused else "person.sign_in"
    _audit_in_every_tenant(person, verb, {"by": list(by)}, reason=refused)
    if is_platform_admin(person.id):
        about, actor = f"person:{person.id}", PlatformActor(person.id)
        note_platform(actor, verb, about, before={}, after={"by": list(by)}, reason=refused)


def note_tie(person: Person, *, provider: str, account: str) -> None:
    """Record that an account of an identity provider can sign in the person from now on.

    The record is written in each of the person's tenants. Opens each tenant's transaction itself.
    """
    _audit_in_every_tenant(person, "person.tie", {"provider": provider, "account": account})


def _audit_in_every_tenant(person: Person, verb: str, after: Mapping[str, Any], *, reason: str = "") -> None:
    for house in tenants_of_person(person.id):
        with tenant_transaction(house):
            write_audit_entry(
                house, principal_of(house, person).id, verb=verb, object=f"person:{person.id}", before={},
                after=after, reason=reason,
            )  # fmt: skip


def _check_wider(
    tenant_id: UUID, person_id: UUID, role: Role, wanted: Authority, *, by: UUID | None, reason: str
) -> None:
    """Check that a change does not widen the limits of a person's decisions improperly.

    Raises:
        NotIndependent: an administrator's limits would exceed those of each of that person's memberships, by
            an act of the administrator or of a related person.
        WiderThanYours: a person's limits would exceed those of each membership and also the giver's own,
            unless the giver is the only administrator.
    """
    if not has_decide_scope(role):
        return
    held = list(Membership.objects.filter(person_id=person_id))
    deciding = [authority_of(one) for one in held if has_decide_scope(Role(one.role))]
    if not all(wanted.reaches_beyond(one) for one in deciding):
        return
    name = f"person:{person_id}"
    if any(one.role == Role.ADMIN.value for one in held):
        check_independent(
            tenant_id, name, Actors((), (person_id,)),
            "An administrator's word reaches further by that administrator's own.", by=by, reason=reason,
        )  # fmt: skip
    if by is None or not wanted.queues:
        return
    giver = standing_of(tenant_id, by)
    if giver is not None and not all(wanted.reaches_beyond(one) for one in giver.authorities):
        return
    if another_admin(by):
        raise WiderThanYours
    if giver is not None and giver.owner == person_id:
        return
    what = "Somebody's word reaches further by an administrator whose own does not reach that far."
    write_audit_entry(
        tenant_id, by, verb=DECIDED_ALONE, object=name, before={}, after={"what": what}, reason=reason
    )


def has_decide_scope(role: Role) -> bool:
    """Return whether the limits of a membership with this role have any effect."""
    return Scope.DECIDE in SCOPES[role]


def authority_of(member: Membership) -> Authority:
    """Return the decision limits of a membership."""
    return Authority(tuple(member.queues), member.max_amount, member.max_risk)


def limits_tag(member: Membership) -> str:
    """Return a text that changes with the limits of a membership."""
    return sha256(repr((member.id, authority_of(member))).encode()).hexdigest()[:16]


def _build_input_error(name: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": f"/{name}", "code": code, "detail": detail}])


def hold_members(tenant_id: UUID) -> None:
    """Lock the tenant's members, so that two administrators cannot remove each other at once."""
    take_advisory_lock(f"members:{tenant_id}")


def _format_limits(member: Membership) -> dict[str, Any]:
    amount = member.max_amount
    return {
        "queues": list(member.queues),
        "max_amount": None if amount is None else str(amount),
        "max_risk": member.max_risk,
    }
