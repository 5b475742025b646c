"""A tenant that lets a yes be taken back, and its time going by."""

from uuid import UUID

import psycopg

from approvals.actions.undo_window import set_undo_window
from approvals.models import Deferral, Request
from tenancy.context import tenant
from tests.factories.tenancy import Somebody


def let_undo(tenant_id: UUID, admin: Somebody, seconds: int = 10) -> None:
    """From now on a yes to what is least can be taken back for so long."""
    set_undo_window(tenant_id, seconds, expected=None, by=admin.principal.id, reason="Fingers slip")


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
    with tenant(request.tenant_id):
        return list(Deferral.objects.filter(request_id=request.id).order_by("at", "id"))


def put_class(superuser: psycopg.Connection, request: Request, risk: str) -> None:
    """No tool that ships asks before it does the least: for once, this request says that its does."""
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE approvals_request SET risk = %s WHERE id = %s", [risk, request.id])
