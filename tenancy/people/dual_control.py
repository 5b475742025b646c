"""What loosens a guard waits for a second administrator (R-TOOL-4, R-SEC-6).

It waits where the tenant has, or had within a day, another active administrator. Where it has none, one
word is enough: it needs a reason, and the audit log says that it was the word of one.
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
    """Raise SecondPersonNeeded for what is weaker, a sentence each, unless somebody agreed or nobody else
    could. Joins the tenant's transaction, in which it is done.

    `by` None is the operator at the machine. What one administrator does alone is audited as such. Raises
    InvalidInput where they give no reason.
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
    """Raise NotIndependent where the people behind `by` are among `doers` or related to them, unless nobody
    else could decide. Joins the tenant's transaction, in which it is done.

    `what` says in a sentence what is decided: one administrator alone is audited with it. `by` None is the
    operator at the machine. `instead` is the command for what nobody ever decides of their own deeds: then
    OwnDeed is raised for those among `doers`.
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
    """Raises InvalidInput where nobody says why."""
    if not reason.strip():
        raise InvalidInput(errors=[{"pointer": "/reason", "code": "not-allowed", "detail": "Say why."}])


def loosened_alone(at: datetime) -> list[AuditEntry]:
    """What one administrator loosened or decided alone in the seven days before `at`, the newest first, as
    far as a page shows it. In the tenant's context."""
    rows = AuditEntry.objects.filter(verb__in=(ALONE, DECIDED_ALONE), at__gt=at - STANDS)
    return list(rows.order_by("-at", "-id")[:SHOWN])
