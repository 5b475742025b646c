"""A tenant that lets a yes be taken back, and its time going by."""

from time import monotonic, sleep
from uuid import UUID

import psycopg

from approvals.actions.undo_settings import set_undo_window
from approvals.models import Deferral, Request
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.tenancy import Somebody

PATIENCE_SECONDS = 60.0


def let_undo(tenant_id: UUID, admin: Somebody, seconds: int = 10) -> None:
    """From now on a yes to what is least can be taken back for so long."""
    set_undo_window(tenant_id, seconds, expected=None, by=admin.principal.id, reason="Fingers slip")


def hold_time(superuser: psycopg.Connection, request: Request, seconds: int = 3_600) -> None:
    """The yes to a request, as soon as it was said, takes effect so much later: how many seconds a browser
    needs to take it back is the machine's, and a tenant can give ten at most.
    """
    until = monotonic() + PATIENCE_SECONDS
    while not kept_of(request):
        assert monotonic() < until
        sleep(0.02)
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE approvals_deferral SET effective_at = effective_at + make_interval(secs => %s)"
            " WHERE request_id = %s AND fate = 'stands'",
            [seconds, request.id],
        )


def pass_time(superuser: psycopg.Connection, request: Request) -> None:
    """As if what stands to a request had been said twenty seconds ago."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(
            "UPDATE approvals_deferral SET at = at - interval '20 s',"
            " effective_at = effective_at - interval '20 s' WHERE request_id = %s AND fate = 'stands'",
            [request.id],
        )


def kept_of(request: Request) -> list[Deferral]:
    """What was kept back of a request, in order."""
    with tenant_transaction(request.tenant_id):
        return list(Deferral.objects.filter(request_id=request.id).order_by("at", "id"))


def put_class(superuser: psycopg.Connection, request: Request, risk: str) -> None:
    """No tool that ships asks before it does the least: for once, this request says that its does."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE approvals_request SET risk = %s WHERE id = %s", [risk, request.id])
