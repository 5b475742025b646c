"""Adding and describing queues (R-APPR-5, R-SEC-6)."""

from collections.abc import Iterable
from uuid import UUID

from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, NotFound, Stale
from tenancy.core.queues import LONGEST_DESCRIPTION, QUEUE_NAME
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction
from tenancy.models import Queue


def add_queue(tenant_id: UUID, name: str, description: str, *, by: UUID | None, reason: str = "") -> Queue:
    """Make a queue that memberships, tools, workflows and boundaries may name from now on; audited. Outermost
    verb. Raises InvalidInput for a name that is none or is taken."""
    if not QUEUE_NAME.fullmatch(name):
        raise _build_input_error(
            "name", "invalid", "Lower-case letters, digits, - and _, at most 64, a letter first."
        )
    shown = _validate_description(description)
    with tenant_transaction(tenant_id):
        hold_queues(tenant_id)
        if Queue.objects.filter(name=name).exists():
            raise _build_input_error("name", "taken", f"There is a queue {name} already.")
        made = Queue.objects.create(
            tenant_id=tenant_id, name=name, description=shown, created_by=by, created_at=database_now()
        )
        after = {"name": name, "description": shown}
        write_audit_entry(
            tenant_id, by, verb="queue.add", object=f"queue:{name}", before={}, after=after, reason=reason
        )  # fmt: skip
        return made


def describe_queue(
    tenant_id: UUID,
    name: str,
    description: str,
    *,
    by: UUID | None,
    reason: str = "",
    expected: str | None = None,
) -> Queue:
    """Say what a queue is for; audited. The same again changes nothing. `expected` is the description that
    was looked at. Outermost verb. Raises NotFound, InvalidInput, Stale."""
    shown = _validate_description(description)
    with tenant_transaction(tenant_id):
        row = locked_queue(name)
        if expected is not None and expected != row.description:
            raise Stale
        if shown != row.description:
            before, row.description = row.description, shown
            row.save(update_fields=["description"])
            write_audit_entry(
                tenant_id, by, verb="queue.describe", object=f"queue:{name}", before={"description": before},
                after={"description": shown}, reason=reason,
            )  # fmt: skip
        return row


def furnish_queues(tenant_id: UUID, names: Iterable[str], *, by: UUID | None) -> None:
    """Make those of the queues that are not there, and open those that are closed: what is about to be
    published names them. Each is audited. Joins the tenant's transaction."""
    wanted = sorted(set(names))
    hold_queues(tenant_id)
    there = {row.name: row for row in Queue.objects.filter(name__in=wanted)}
    for name in wanted:
        if name not in there:
            Queue.objects.create(tenant_id=tenant_id, name=name, created_by=by, created_at=database_now())
            write_audit_entry(
                tenant_id, by, verb="queue.add", object=f"queue:{name}", before={}, after={"name": name},
                reason="What ships names it.",
            )  # fmt: skip
        elif there[name].closed_at is not None:
            set_closed(tenant_id, there[name], closed=False, by=by, reason="What ships names it.")


def set_closed(tenant_id: UUID, row: Queue, *, closed: bool, by: UUID | None, reason: str) -> None:
    """Close a queue or open it again, and audit it. Joins the tenant's transaction, in which the caller has
    looked at who names it."""
    row.closed_at, row.closed_by = (database_now(), by) if closed else (None, None)
    row.save(update_fields=["closed_at", "closed_by"])
    write_audit_entry(
        tenant_id, by, verb="queue.close" if closed else "queue.reopen", object=f"queue:{row.name}",
        before={"closed": not closed}, after={"closed": closed}, reason=reason,
    )  # fmt: skip


def locked_queue(name: str) -> Queue:
    """The queue, which nobody else closes, opens or begins to name until the transaction ends. Raises
    NotFound."""
    row = Queue.objects.select_for_update(no_key=True).filter(name=name).first()
    if row is None:
        raise NotFound
    return row


def hold_queues(tenant_id: UUID) -> None:
    """One new queue of a tenant at a time: two may not get one name at once."""
    take_advisory_lock(f"queues:{tenant_id}")


def _validate_description(description: str) -> str:
    shown = description.strip()
    if len(shown) > LONGEST_DESCRIPTION or not shown.isprintable():
        detail = f"One line of at most {LONGEST_DESCRIPTION} characters."
        raise _build_input_error("description", "not-allowed", detail)
    return shown


def _build_input_error(name: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": f"/{name}", "code": code, "detail": detail}])
