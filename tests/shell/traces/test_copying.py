"""What a run goes on from is copied with all that it names in turn, and with nothing else (R-SESS-9)."""

from uuid import UUID

from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tests.conftest import House
from tests.proves import proves
from traces.actions import copy_payloads
from traces.models import Payload


def stored(house: House, bodies: dict[str, bytes]) -> UUID:
    """A run's content by digest, as it was stored."""
    run = fresh_id()
    with tenant_transaction(house.tenant.id):
        for digest, body in bodies.items():
            raw_cursor().execute(
                "INSERT INTO traces_payload (tenant_id, run_id, digest, body, size) VALUES (%s,%s,%s,%s,%s)",
                (house.tenant.id, run, bytes.fromhex(digest), body, len(body)),
            )
    return run


def copied(house: House, source: UUID, state: bytes) -> set[str]:
    """The digests of what a run gets that goes on from this state."""
    run = fresh_id()
    with tenant_transaction(house.tenant.id):
        copy_payloads(house.tenant.id, source, run, state)
        return {bytes(row.digest).hex() for row in Payload.objects.filter(run_id=run)}


A, B, C, D = (letter * 64 for letter in "abcd")


@proves("R-SESS-9", part="a retry's content is its own")
def test_what_is_named_is_copied_with_what_that_names(house: House) -> None:
    bodies = {A: b'{"result": "%s"}' % B.encode(), B: b"read", C: b"unnamed", D: b"said of %s" % A.encode()}
    source = stored(house, bodies)
    assert copied(house, source, b'{"reply": "%s"}' % A.encode()) == {A, B}
    assert copied(house, source, b'["%s"]' % D.encode()) == {A, B, D}
    assert copied(house, source, b"{}") == set()


@proves("R-SESS-9", part="a retry's content is its own")
def test_what_names_one_another_is_copied_once(house: House) -> None:
    source = stored(house, {A: B.encode(), B: b" ".join((A.encode(), B.encode(), C.encode())), C: A.encode()})
    assert copied(house, source, A.encode()) == {A, B, C}


@proves("R-SESS-9", part="a retry's content is its own")
def test_a_digest_behind_other_letters_or_bytes_is_seen(house: House) -> None:
    source = stored(house, {A: "caf\u00e9".encode() + B.encode(), B: b"\x00\xff" + C.encode(), C: b"\xff"})
    assert copied(house, source, "\u00e9".encode() + A.encode()) == {A, B, C}
