"""Queries of a tenant's sign-in rules, and of a person's second factor in a session (R-SEC-11)."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

from tenancy.core.errors import Forbidden
from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area, MissingFactor, Proof, SignInRules, find_lack
from tenancy.models import Person, SignInRulesVersion

FACTORS: Final = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
VERSIONS_SHOWN: Final = 20


class SecondFactorMissing(Forbidden):
    """In this tenant your role needs a second factor, and this session was not opened with one."""

    code = "second-factor-missing"


class RulesNow(NamedTuple):
    """The rules in force and their version, 0 if none were set; when, by whom and why they were set."""

    rules: SignInRules
    version: int = 0
    at: datetime | None = None
    by: UUID | None = None
    reason: str = ""


def sign_in_rules_now() -> RulesNow:
    """Return the rules of this tenant. In the tenant's context."""
    row = SignInRulesVersion.objects.order_by("-version").first()
    return RulesNow(SignInRules()) if row is None else _rules_of(row)


def sign_in_rules_versions() -> list[RulesNow]:
    """Return the newest versions of the rules, as many as a page shows. In the tenant's context."""
    return [_rules_of(row) for row in SignInRulesVersion.objects.order_by("-version")[:VERSIONS_SHOWN]]


def _rules_of(row: SignInRulesVersion) -> RulesNow:
    rules = SignInRules(
        second_factor=frozenset(Role(one) for one in row.second_factor),
        ask_again=frozenset(Area(one) for one in row.ask_again), minutes=row.minutes,
    )  # fmt: skip
    return RulesNow(rules, row.version, row.at, row.by, row.reason)


def lack_of(
    session: SessionBase,
    person: Person,
    rules: SignInRules,
    roles: tuple[Role, ...],
    areas: tuple[Area, ...] = (),
) -> MissingFactor | None:
    """Return what the person of a session lacks under the rules.

    Queries the database only if the rules concern the person.
    """
    if not rules.concerns(roles, areas):
        return None
    return find_lack(rules, roles, areas, proof_of(session, person), timezone.now())


def proof_of(session: SessionBase, person: Person) -> Proof:
    """Return a person's second factor, and when this session showed it last.

    A factor that the person has removed since does not count.
    """
    held = dict(Authenticator.objects.filter(user=person).values_list("id", "type"))
    asking = cast("Any", SimpleNamespace(session=session))
    times = [
        float(record["at"])
        for record in get_authentication_records(asking, person)
        if record.get("method") == "mfa" and record.get("id") in held
    ]
    proven = datetime.fromtimestamp(max(times), UTC) if times else None
    return Proof(enrolled=any(one in FACTORS for one in held.values()), proven_at=proven)
