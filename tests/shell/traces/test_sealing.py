"""The key of a run's sealed values: kept wrapped, its own, and erased with the run."""

import pytest
from django.db import DatabaseError, transaction

from orchestrator.core.common.argument_parsing import Arguments, MalformedArguments, parse_arguments
from orchestrator.llm.gateways.sealed_arguments import sealed_arguments
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.traces import write_run
from tests.proves import proves
from traces.actions import erase_run_payloads
from traces.core.canonical import payload_digest
from traces.core.errors import Unopenable
from traces.core.sealed_references import Place, format_sealed_reference, read_sealed
from traces.models import Salt
from traces.queries import vault_of
from traces.sealed_values import Vault, fresh_vault

PLACE = Place(source="call", tool="crm.change", member="password")


def vault() -> Vault:
    """One of a tenant that nobody else has."""
    return fresh_vault(fresh_id())


@proves("R-SEC-4", part="sealed under a key of the run's own")
@pytest.mark.parametrize("secret", ["", "hunter2", 'é"\\\u2028 ', "x" * 5_000])
def test_a_value_opens_to_itself_under_its_own_key_alone(secret: str) -> None:
    one, other = vault(), vault()
    reference = one.seal("secret_field", secret, PLACE)
    ((digest, body),) = one.bodies.items()
    assert reference == format_sealed_reference("secret_field", digest)
    assert digest == payload_digest(one.salt, body)
    assert secret.encode() not in body or not secret
    assert one.open_value(body) == secret
    assert one.seal("secret_field", secret, PLACE) == reference
    for wrong in (other, Vault(tenant=fresh_id(), salt=one.salt, wrapped=one.wrapped)):
        with pytest.raises(Unopenable):
            wrong.open_value(body)


@proves("R-SEC-4", part="what a value was sealed for cannot be changed")
def test_a_payload_whose_place_was_changed_opens_no_more() -> None:
    one = vault()
    one.seal("secret_field", "hunter2", PLACE)
    (body,) = one.bodies.values()
    moved = read_sealed(body)
    assert moved is not None
    for was, becomes in ((b"crm.change", b"eve.change"), (b"secret_field", b"api_key_____")):
        changed = body.replace(was, becomes)
        assert changed != body
        with pytest.raises(Unopenable):
            one.open_value(changed)


def test_short_values_have_one_length() -> None:
    one = vault()
    for secret in ("a", "hunter2", "correct horse battery staple"):
        one.seal("secret_field", secret, PLACE)
    assert len({len(body) for body in one.bodies.values()}) == 1


@proves("X6", part="the key goes with the salt")
def test_an_erased_run_has_no_key(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(pen.tenant):
        assert vault_of(pen.tenant, pen.run) is not None
        erase_run_payloads(pen.run)
        row = Salt.objects.get(run_id=pen.run)
        assert (row.salt, row.sealing_key) == (None, None)
        assert vault_of(pen.tenant, pen.run) is None


def test_a_key_cannot_be_taken_from_its_run_by_hand(house: House) -> None:
    pen = write_run(house.tenant.id)
    with tenant_transaction(pen.tenant), pytest.raises(DatabaseError), transaction.atomic():
        Salt.objects.filter(run_id=pen.run).update(sealing_key=None)


@proves("R-SEC-11", part="duplicate member names beside a sealed value")
@pytest.mark.parametrize(
    "raw",
    [
        '{"password": "hunter2-first", "password": "hunter2-last"}',
        '{"user": {"password": "hunter2-first"}, "user": {"password": "hunter2-last"}}',
        '"{\\"password\\": \\"hunter2-first\\", \\"password\\": \\"hunter2-last\\"}"',
    ],
)
def test_arguments_with_a_sealed_member_twice_hold_no_secret_and_are_refused(raw: str) -> None:
    assert isinstance(parse_arguments(raw.encode(), repeated=True), Arguments)
    one = vault()
    kept, kinds = sealed_arguments(raw, "crm.change", one)
    assert kinds
    assert "hunter2" not in kept
    assert isinstance(parse_arguments(kept.encode()), MalformedArguments)
    again, _ = sealed_arguments(kept, "crm.change", one)
    assert isinstance(parse_arguments(again.encode()), MalformedArguments)
