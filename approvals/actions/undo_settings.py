"""How long a yes can be taken back: versions, each with its reason. Off until an administrator says more."""

from uuid import UUID

from approvals.core.undo import LONGEST
from approvals.models import UndoWindow
from approvals.queries.undo import WindowNow, window_now
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, Stale
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import take_advisory_lock, tenant_transaction

LONGEST_REASON = 500


def set_undo_window(
    tenant_id: UUID, seconds: int, *, expected: int | None, by: UUID, reason: str
) -> WindowNow:
    """Let a yes to what is least be taken back for this many seconds from now on, 0 for not at all. Outermost
    verb: owns the transaction.

    What is kept back already keeps its time. `expected` is the version that was looked at. The same again
    changes nothing. Raises InvalidInput (400), Stale (412).
    """
    if not 0 <= seconds <= LONGEST:
        raise _make_invalid_input("/seconds", "invalid", f"From 0, which is off, to {LONGEST} seconds.")
    if not reason.strip():
        raise _make_invalid_input("/reason", "required", "Say why.")
    with tenant_transaction(tenant_id):
        take_advisory_lock(f"undo:{tenant_id}")
        before = window_now()
        if expected is not None and expected != before.version:
            raise Stale
        if seconds == before.seconds:
            return before
        UndoWindow.objects.create(
            id=fresh_id(), tenant_id=tenant_id, version=before.version + 1, seconds=seconds,
            reason=reason[:LONGEST_REASON], by=by, at=database_now(),
        )  # fmt: skip
        write_audit_entry(
            tenant_id, by, verb="undo_window.set", object="policy:undo",
            before={"version": before.version, "seconds": before.seconds},
            after={"version": before.version + 1, "seconds": seconds}, reason=reason,
        )  # fmt: skip
        return window_now()


def _make_invalid_input(pointer: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(errors=[{"pointer": pointer, "code": code, "detail": detail}])
