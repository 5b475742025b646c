"""Second factors of people in tests: set up, and shown in a session so long ago."""

import time
from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from allauth.account.internal.flows.login import _AUTHENTICATION_METHODS_USER_SESSION_KEY as WHO
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY as HOW
from allauth.account.internal.userkit import user_id_to_str
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth
from allauth.mfa.totp.internal.auth import TOTP, hotp_value
from django.test import Client

from tenancy.actions.sign_in_rules import set_sign_in_rules
from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area, SignInRules
from tenancy.models import Person

SECRET = "JBSWY3DPEHPK3PXP"


def set_rules(
    tenant_id: UUID, *, roles: Collection[Role] = (), areas: Collection[Area] = (), minutes: int = 10
) -> None:
    """Make these the tenant's rules, as from the machine."""
    rules = SignInRules(second_factor=frozenset(roles), ask_again=frozenset(areas), minutes=minutes)
    set_sign_in_rules(tenant_id, rules, expected=None, by=None, reason="for a test")


def enrol(person: Person) -> Authenticator:
    """An authenticator app of a person's, with `SECRET`."""
    found: Authenticator = TOTP.activate(person, SECRET).instance
    return found


def show_factor(client: Client, factor: Authenticator, *, ago: timedelta = timedelta(0)) -> None:
    """Have the session of a browser shown a factor so long ago."""
    session: Any = client.session
    at = time.time() - ago.total_seconds()
    session[HOW] = [{"method": "mfa", "at": at, "id": factor.pk, "type": factor.type}]
    session[WHO] = user_id_to_str(factor.user)
    session.save()


def code_now() -> str:
    """Return the code of this half minute, by the clock that the server goes by."""
    return f"{hotp_value(SECRET, next(auth.yield_hotp_counters_from_time())):06d}"
