"""Dual control: a change that loosens a guard needs a second administrator (R-TOOL-4, R-SEC-6).

The change waits if the tenant has, or had within a day, another active administrator. Otherwise one
administrator is enough: the change needs a reason, and the audit log says that one administrator decided.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotIndependent, OwnDeed, SecondPersonNeeded
from tenancy.core.relations import Actors, Closeness
from tenancy.models import AuditEntry, Principal
from tenancy.people.member_queries import another_admin
from tenancy.people.relations import find_closeness_to

ALONE: Final = "loosening.alone"
DECIDED_ALONE: Final = "decision.alone"
STANDS: Final = timedelta(days=7)
SHOWN: Final = 5


def ask_second(
    tenant_id: UUID,
    name: str,
    weaker: Iterable[str],
    *,
    by: UUID | None,
    agreed: UUID | None,
    reason: str,
    tag: str = "",
) -> None:
    """Check that a loosening has a second administrator's consent, or that there is no second one.

    `weaker` are the loosenings, a sentence each. `agreed` is the second administrator. `by` None is the
    operator at the machine. A loosening by one administrator alone is audited as such. Joins the tenant's
    transaction, in which the change is made.

    Raises:
        SecondPersonNeeded: another administrator could agree and none has.
        InvalidInput: a lone administrator gives no reason.
    """
    found = list(weaker)
    if not found or by is None or agreed is not None:
        return
    if another_admin(by):
        raise SecondPersonNeeded(name=name, weaker=" ".join(found)[:1_000], cases=found, tag=tag)
    check_reason(reason)
    write_audit_entry(
        tenant_id, by, verb=ALONE, object=name, before={}, after={"weaker": found}, reason=reason
    )


def check_independent(
    tenant_id: UUID,
    name: str,
    doers: Actors[UUID],
    what: str,
    *,
    by: UUID | None,
    reason: str,
    instead: str = "",
) -> None:
    """Check that the people behind `by` are independent of `doers`, or that no other administrator exists.

    `what` is a sentence about the decision; a decision by one administrator alone is audited with it. `by`
    None is the operator at the machine. `instead` is the command to use for a decision that is never allowed
    about a person's own acts. Joins the tenant's transaction, in which the decision is made.

    Raises:
        NotIndependent: the people behind `by` are among `doers` or related to them.
        OwnDeed: `instead` is given and the people behind `by` are among `doers`.
    """
    if by is None:
        return
    owner = Principal.objects.values_list("owner_id", flat=True).get(id=by)
    close = find_closeness_to(by, owner, doers)
    if close is Closeness.NONE:
        return
    if instead and close is Closeness.OWN:
        raise OwnDeed(name=name, command=instead)
    if another_admin(by):
        raise NotIndependent(name=name)
    write_audit_entry(
        tenant_id, by, verb=DECIDED_ALONE, object=name, before={}, after={"what": what}, reason=reason
    )


def check_reason(reason: str) -> None:
    """Check that a reason is given.

    Raises: InvalidInput if the reason is blank.
    """
    if not reason.strip():
        raise InvalidInput(errors=[{"pointer": "/reason", "code": "not-allowed", "detail": "Say why."}])


def loosened_alone(at: datetime) -> list[AuditEntry]:
    """Return what one administrator loosened or decided alone in the seven days before `at`.

    Newest first, at most as many as a page shows. In the tenant's context.
    """
    rows = AuditEntry.objects.filter(verb__in=(ALONE, DECIDED_ALONE), at__gt=at - STANDS)
    return list(rows.order_by("-at", "-id")[:SHOWN])
