"""Which second factor the rules of signing in ask for, and where they ask for less than before (R-SEC-11)."""

from datetime import UTC, datetime, timedelta

import pytest

from tenancy.core.roles import Role
from tenancy.core.sign_in.rules import Area, MissingFactor, Proof, SignInRules, find_lack, list_loosenings
from tests.proves import proves

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NONE, IDLE = Proof(enrolled=False), Proof(enrolled=True)
ADMINS = SignInRules(second_factor=frozenset({Role.ADMIN}))
KEYS = SignInRules(ask_again=frozenset({Area.KEYS}), minutes=5)


def shown(seconds: int) -> Proof:
    """A factor shown so long ago."""
    return Proof(enrolled=True, proven_at=NOW - timedelta(seconds=seconds))


@proves("R-SEC-11", part="a second factor is required per role")
@pytest.mark.parametrize(
    ("roles", "proof", "lack"),
    [
        ((Role.ADMIN,), NONE, MissingFactor.ENROL),
        ((Role.OPERATOR, Role.ADMIN), NONE, MissingFactor.ENROL),
        ((Role.ADMIN,), IDLE, MissingFactor.PROVE),
        ((Role.ADMIN,), shown(86_400), None),
        ((Role.OPERATOR,), NONE, None),
    ],
)
def test_a_role_that_needs_a_factor_lacks_it_until_it_is_shown(
    roles: tuple[Role, ...], proof: Proof, lack: MissingFactor | None
) -> None:
    assert find_lack(ADMINS, roles, (), proof, NOW) is lack


@proves("R-SEC-11", part="a second factor is asked for again before money, keys and invitations")
@pytest.mark.parametrize(
    ("areas", "proof", "lack"),
    [
        ((), NONE, None),
        ((Area.MONEY, Area.INVITATIONS), NONE, None),
        ((Area.KEYS,), NONE, MissingFactor.ENROL),
        ((Area.KEYS,), IDLE, MissingFactor.PROVE),
        ((Area.MONEY, Area.KEYS), shown(300), MissingFactor.PROVE),
        ((Area.KEYS,), shown(299), None),
    ],
)
def test_a_change_of_an_area_lacks_a_proof_that_is_older_than_the_minutes(
    areas: tuple[Area, ...], proof: Proof, lack: MissingFactor | None
) -> None:
    assert find_lack(KEYS, (Role.ADMIN,), areas, proof, NOW) is lack


@proves("R-SEC-11", part="rules of signing in that ask for less are loosenings")
def test_rules_loosen_by_a_role_an_area_or_more_minutes_alone() -> None:
    assert list_loosenings(SignInRules(), ADMINS) == ()
    assert list_loosenings(KEYS, SignInRules(ask_again=KEYS.ask_again, minutes=4)) == ()
    assert list_loosenings(ADMINS, SignInRules()) == ("No second factor is needed any more by: admin.",)
    assert len(list_loosenings(KEYS, SignInRules(ask_again=KEYS.ask_again, minutes=6))) == 1
    # Minutes of areas that nobody is asked in loosen nothing.
    assert list_loosenings(ADMINS, SignInRules(second_factor=ADMINS.second_factor, minutes=60)) == ()
    assert len(list_loosenings(KEYS, SignInRules(minutes=60))) == 1
