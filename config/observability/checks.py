"""Checks that make Interlock refuse to start (docs/operations.md, R-SEC-8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.management.base import SystemCheckError
from django.db import DatabaseError, connections
from psycopg_pool import PoolTimeout

from config.data_format import explain_database_refusal
from orchestrator.tools.gateways.sandbox import bubblewrap, monty_scripts

LEDGERS = (
    "traces_event",
    "traces_record",
    "traces_snapshot",
    "traces_payload",
    "approvals_decision",
    "budgets_entry",
    "tenancy_auditentry",
)
# A role also has the rights of the roles it is a member of: by inheritance, or after `SET ROLE`.
_WHO = (
    "SELECT current_user, bool_or(rolsuper), bool_or(rolbypassrls), bool_or(rolcreaterole) FROM pg_roles"
    " WHERE pg_has_role(current_user, oid, 'MEMBER')"
)
_OWNS = (
    "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND pg_has_role(current_user, relowner, 'MEMBER')"
)


@register(Tags.security, deploy=True)
def a_key_outside_embedded_mode(
    app_configs: Sequence[AppConfig] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Report a missing secret key, without which each process would sign with a key of its own."""
    if settings.SECRET_KEY_GIVEN or settings.INTERLOCK_EMBEDDED or settings.DEBUG:
        return []
    hint = "Set INTERLOCK_SECRET_KEY to at least 50 random characters."
    return [Error("No secret key is configured.", hint=hint, id="interlock.E001")]


@register(Tags.security, deploy=True)
def isolation_of_scripts(
    app_configs: Sequence[AppConfig] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Warn if model code runs without system isolation on this machine, or not at all."""
    why = bubblewrap.explain_unavailability()
    if not why:
        return []
    if monty_scripts.missing_isolation():
        said = "sandbox.script runs without the system's isolation"
        hint = (
            "Install bubblewrap 0.7 or later, or set INTERLOCK_SCRIPT_ISOLATION=required to refuse scripts."
        )
    else:
        said, hint = "sandbox.script is refused", "Install bubblewrap 0.7 or later."
    return [CheckWarning(f"{said} on this machine: {why}.", hint=hint, id="interlock.W001")]


def power_of_the_role() -> list[CheckMessage]:
    """Return one error for each right that lets the application's role bypass the guards of the ledgers."""
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute(_WHO)
            name, superuser, bypass, creates = cursor.fetchone()
            cursor.execute(_OWNS, [list(LEDGERS)])
            owned = sorted(row[0] for row in cursor.fetchall())
    except (DatabaseError, PoolTimeout) as error:
        return [Error("The database does not answer.", hint=str(error).strip(), id="interlock.E002")]
    sentences = (
        (superuser, "E003", f"{name} is or may become a superuser: row-level security does not hold for it."),
        (bypass, "E004", f"{name} has BYPASSRLS, or may get it: row-level security does not hold for it."),
        (creates, "E005", f"{name} may create roles, and so grant itself anything."),
        (
            owned,
            "E006",
            f"{name} owns or may own {', '.join(owned)}: it could switch the ledger's triggers off.",
        ),
    )
    hint = "Give DATABASE_URL the role interlock_app."
    return [
        Error(sentence, hint=hint, id=f"interlock.{code}") for wrong, code, sentence in sentences if wrong
    ]


@register(Tags.database)
def the_role_is_powerless(
    app_configs: Sequence[AppConfig] | None = None, *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Refuse, in `check --database default`, a role that could bypass its own restrictions."""
    return power_of_the_role() if "default" in (databases or ()) else []


@register(Tags.database)
def check_database_format(
    app_configs: Sequence[AppConfig] | None = None, *, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """Refuse, in `check --database default`, a database of a format that this release does not read."""
    if "default" not in (databases or ()):
        return []
    connection = connections["default"]
    try:
        with connection.cursor() as cursor:
            refusal = explain_database_refusal(cursor, connection.settings_dict["NAME"])
    except (DatabaseError, PoolTimeout):
        # power_of_the_role reports it.
        return []
    return [Error(refusal, id="interlock.E007")] if refusal else []


def refuse_power() -> None:
    """Refuse to start with a missing key, a too powerful role or a database of another format.

    Every long-lived process calls it.

    Raises: SystemCheckError.
    """
    # A database that does not answer is waited for once.
    errors = [*a_key_outside_embedded_mode(), *power_of_the_role()]
    if errors := errors or check_database_format(databases=["default"]):
        message = "; ".join(f"{error.msg} {error.hint or ''}".strip() for error in errors)
        raise SystemCheckError(message)
    connections.close_all()
