"""Invite a tenant's first administrator, from the platform console or from a shell command (R-SEC-10)."""

from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from tenancy.actions.people import (
    Invitation,
    Limits,
    has_signed_in,
    invite_member,
    mail_link,
    may_get_link,
    note_link,
)
from tenancy.actions.relations import record_tie_by_people
from tenancy.actions.tenants import note_of_tenant
from tenancy.core.addresses import normalize_email_address
from tenancy.core.errors import NotFound, TenancyError
from tenancy.core.relations import TieKind
from tenancy.core.roles import EVERY_QUEUE, Role
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Membership, Tenant
from tenancy.people.first_password import first_password_path
from tenancy.people.platform_admins import PlatformActor, check_platform_admin


class AdministratorThere(TenancyError):
    """An administrator of this tenant has signed in before; they invite further people themselves."""

    code = "administrator-there"


class FirstAdministrator(NamedTuple):
    """The invited administrator and how the first-password link is delivered.

    `path` is the path of the link that sets the password, or "". `mailed` is true if the link was mailed to
    the administrator instead.
    """

    invited: Invitation
    path: str = ""
    mailed: bool = False


def invite_first_administrator(
    tenant_id: UUID, email: str, name: str, *, by: PlatformActor | None, origin: str = ""
) -> FirstAdministrator:
    """Invite a tenant's first administrator, or issue a new link to one who has not signed in yet.

    Audited. Outermost verb: owns the transaction, or joins the tenant's.

    The link is mailed where mail is set up. Otherwise the result contains the link, and the platform
    administrator who sees the link becomes related to the invited person, as the giver of a role is for a
    day. `by` None means a caller with shell access; that caller is related to no person and gets no link
    here.

    Raises: Forbidden, NotFound, InvalidInput; AdministratorThere once an administrator has signed in.
    """
    with tenant_transaction(tenant_id):
        check_platform_admin(by)
        row = Tenant.objects.select_for_update().filter(id=tenant_id).first()
        if row is None:
            raise NotFound
        waiting = _administrators_waiting(tenant_id)
        invited = next((one for one in waiting if one.person.email == normalize_email_address(email)), None)
        if invited is None:
            inviters = () if by is None else (by.person,)
            invited = invite_member(
                tenant_id, email, name, Role.ADMIN, Limits(EVERY_QUEUE), by=None, by_people=inviters
            )
            if by is not None:
                record_tie_by_people(tenant_id, TieKind.ROLE_GIVEN, invited.person.id, by=[by.person])
        note_of_tenant(
            row, "tenant.invite", {}, {"administrator": invited.person.email}, by=by, in_tenant=False
        )
        if by is None or not may_get_link(tenant_id, invited.person):
            return FirstAdministrator(invited)
        if settings.INTERLOCK_SENDS_MAIL:
            mail_link(tenant_id, invited.person, by=None, origin=origin, platform=True)
            return FirstAdministrator(invited, mailed=True)
        record_tie_by_people(tenant_id, TieKind.LINK_SEEN, invited.person.id, by=[by.person])
        note_link(tenant_id, invited.person, None, "shown", platform=True)
        return FirstAdministrator(invited, path=first_password_path(invited.person))


def _administrators_waiting(tenant_id: UUID) -> list[Invitation]:
    """Return the administrators of the tenant if none of them has signed in and can act.

    Raises: AdministratorThere if an administrator has signed in and can act.
    """
    rows = Membership.objects.filter(role=Role.ADMIN.value, person__is_active=True).select_related("person")
    found = [Invitation(row.person, row, new=True) for row in rows.order_by("created_at", "id")]
    if any(has_signed_in(one.person) and not one.member.awaits_confirmation for one in found):
        raise AdministratorThere(tenant=tenant_id)
    return found
