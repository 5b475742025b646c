"""The one table from roles to scopes, and the sentences of errors."""

import pytest

from tenancy.core.errors import InterlockError, OutsideTenant, TenancyError
from tenancy.core.roles import SCOPES, Role, Scope, scopes_of
from tests.proves import proves

TABLE = {
    "operator": "submit read inspect operate",
    "reviewer": "read inspect decide reveal",
    "admin": "submit read inspect decide reveal operate admin",
    "auditor": "read inspect",
    "client": "submit read",
}


@proves("R-SEC-2", part="roles to scopes")
@pytest.mark.parametrize("role", Role)
def test_a_role_has_these_scopes_and_no_others(role: Role) -> None:
    assert [scope.value for scope in SCOPES[role]] == TABLE[role.value].split()


def test_several_roles_add_up_in_one_order() -> None:
    both = (Role.REVIEWER, Role.CLIENT)
    added_up = (Scope.SUBMIT, Scope.READ, Scope.INSPECT, Scope.DECIDE, Scope.REVEAL)
    assert scopes_of(both) == scopes_of(both[::-1]) == added_up


def test_no_role_has_no_scope() -> None:
    assert scopes_of(()) == ()


def test_an_error_says_its_sentence_with_its_data() -> None:
    error = OutsideTenant(table="traces_event")
    assert str(error) == "The table traces_event belongs to tenants and was touched outside one."
    assert (error.code, error.data) == ("outside-tenant", {"table": "traces_event"})


def test_data_that_was_not_given_stays_a_name() -> None:
    assert "{table}" in str(OutsideTenant())


def test_every_error_has_a_code_and_a_sentence_of_its_own() -> None:
    kinds: list[type[InterlockError]] = [InterlockError, *TenancyError.__subclasses__(), TenancyError]
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all((kind.__doc__ or "").strip() for kind in kinds)
