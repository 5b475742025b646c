"""The suite stands where the application stands: powerless."""

from __future__ import annotations

from django.db import connection

from tests.proves import proves
from tests.servers import TestServers


@proves("R-SEC-1", part="role")
def test_the_suite_runs_as_the_application_s_role(servers: TestServers) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == ("interlock_app", False, False)


def test_the_application_s_role_owns_nothing(servers: TestServers) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE pg_has_role('interlock_app', relowner, 'USAGE')")
        assert cursor.fetchone() == (0,)
