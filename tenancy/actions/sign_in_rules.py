"""Setting a tenant's rules of signing in, and taking a lost second factor away (R-SEC-11)."""

from typing import Any, Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from django.db import connection

from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput, Stale
from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import LONGEST_MINUTES, Area, SignInRules, list_loosenings
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from tenancy.models import Person, SignInRulesVersion
from tenancy.people.dual_control import ask_second, check_reason
from tenancy.people.sign_in_rules import RulesNow, sign_in_rules_now

SIGN_IN_RULES: Final = "the sign-in rules"
"""What a change of the rules is called that waits; no tool is called so."""
_HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 31))"


def set_sign_in_rules(
    tenant_id: UUID,
    wanted: SignInRules,
    *,
    expected: int | None,
    by: UUID | None,
    reason: str,
    agreed: UUID | None = None,
) -> RulesNow:
    """Make these the rules, from every person's next request on. Audited; the same again changes nothing.
    Opens or joins the tenant's transaction.

    `expected` is the version that was looked at, `by` None the operator at the machine, `agreed` who agreed
    to ask for less. Raises InvalidInput, Stale, SecondPersonNeeded.
    """
    check_reason(reason)
    if not 1 <= wanted.minutes <= LONGEST_MINUTES:
        detail = f"From 1 to {LONGEST_MINUTES} minutes."
        raise InvalidInput(errors=[{"pointer": "/minutes", "code": "not-allowed", "detail": detail}])
    with tenant_transaction(tenant_id):
        with connection.cursor() as cursor:
            cursor.execute(_HOLD, (str(tenant_id),))
        before = sign_in_rules_now()
        if expected is not None and expected != before.version:
            raise Stale
        if wanted == before.rules:
            return before
        ask_second(
            tenant_id, SIGN_IN_RULES, list_loosenings(before.rules, wanted), by=by, agreed=agreed,
            reason=reason, tag=str(before.version),
        )  # fmt: skip
        after = rules_document(wanted)
        SignInRulesVersion.objects.create(
            tenant_id=tenant_id, version=before.version + 1, reason=reason[:500], by=by, agreed_by=agreed,
            at=database_now(), **after,
        )  # fmt: skip
        write_audit_entry(
            tenant_id, by, verb="sign_in.rules", object=f"tenant:{tenant_id}",
            before={"version": before.version, **rules_document(before.rules)},
            after={
                "version": before.version + 1, **after,
                **({} if agreed is None else {"agreed_by": str(agreed)}),
            },
            reason=reason,
        )  # fmt: skip
        return sign_in_rules_now()


def forget_factors(tenant_id: UUID, person: Person) -> int:
    """Take a person's second factors away, recovery codes too, as the operator at the machine; how many.
    Sessions that were proven by them are proven no more. Audited in this tenant. Owns the transaction."""
    with tenant_transaction(tenant_id):
        held = Authenticator.objects.filter(user=person)
        kinds = sorted(held.values_list("type", flat=True))
        held.delete()
        write_audit_entry(
            tenant_id, None, verb="person.forget_factor", object=f"person:{person.id}",
            before={"factors": kinds}, after={"factors": []},
        )  # fmt: skip
        return len(kinds)


def rules_document(rules: SignInRules) -> dict[str, Any]:
    """The rules as they are stored and shown, in one order."""
    return {
        "second_factor": [role.value for role in Role if role in rules.second_factor],
        "ask_again": [area.value for area in Area if area in rules.ask_again],
        "minutes": rules.minutes,
    }


def read_rules(document: dict[str, Any]) -> SignInRules:
    """The rules of a document of the same shape. Raises ValueError, KeyError."""
    return SignInRules(
        second_factor=frozenset(Role(one) for one in document["second_factor"]),
        ask_again=frozenset(Area(one) for one in document["ask_again"]),
        minutes=int(document["minutes"]),
    )
