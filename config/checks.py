"""What the house refuses to start with (ROLES.md, R-SEC-8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import OperationalError, connections

LEDGERS = (
    "traces_event",
    "traces_record",
    "traces_snapshot",
    "traces_payload",
    "approvals_decision",
    "budgets_entry",
    "tenancy_auditentry",
)
_WHO = "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = current_user"
_OWNS = (
    "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND pg_has_role(current_user, relowner, 'USAGE')"
)


@register(Tags.security)
def a_key_outside_embedded_mode(
    app_configs: Sequence[AppConfig] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Each process would sign with another key if none is given."""
    if settings.SECRET_KEY_GIVEN or settings.INTERLOCK_EMBEDDED or settings.DEBUG:
        return []
    hint = "Set INTERLOCK_SECRET_KEY to at least 50 random characters."
    return [Error("No secret key is configured.", hint=hint, id="interlock.E001")]


@register(Tags.database)
def the_role_is_powerless(
    app_configs: Sequence[AppConfig] | None = None, *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """The application's role must not be able to step round row-level security or unseal a ledger."""
    if "default" not in (databases or ()):
        return []
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute(_WHO)
            name, superuser, bypass, creates = cursor.fetchone()
            cursor.execute(_OWNS, [list(LEDGERS)])
            owned = sorted(row[0] for row in cursor.fetchall())
    except OperationalError as error:
        return [Error("The database does not answer.", hint=str(error).strip(), id="interlock.E002")]
    return [
        Error(sentence, hint="Give DATABASE_URL the role interlock_app.", id=code)
        for sentence, code, wrong in (
            (f"{name} is a superuser: row-level security does not hold for it.", "interlock.E003", superuser),
            (f"{name} has BYPASSRLS: row-level security does not hold for it.", "interlock.E004", bypass),
            (f"{name} may create roles, and so grant itself anything.", "interlock.E005", creates),
            (
                f"{name} owns {', '.join(owned)} and could switch the ledger's triggers off.",
                "interlock.E006",
                owned,
            ),
        )
        if wrong
    ]
