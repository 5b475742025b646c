"""The form of a key, without a database."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenancy.core.keys import SECRET_BYTES, format_api_key, hash_key_secret, is_matching_secret, parse_api_key
from tests.proves import proves as shows

ID = UUID("0198a3f0-0000-7000-8000-000000000001")
CLEAR = format_api_key(ID, bytes(range(SECRET_BYTES)))


@given(st.uuids(), st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES))
def test_what_is_written_can_be_read(key_id: UUID, chance: bytes) -> None:
    found = parse_api_key(format_api_key(key_id, chance))
    assert found is not None
    assert found.id == key_id
    assert is_matching_secret(found.secret, hash_key_secret(found.secret))


def test_a_key_names_what_it_is_and_needs_no_quoting() -> None:
    assert CLEAR.startswith(f"ilk_{ID.hex}_")
    assert CLEAR.replace("_", "").isalnum()


@pytest.mark.parametrize("place", range(len("ilk_"), len(CLEAR)))
def test_a_slip_of_one_character_is_seen_without_a_look_at_the_database(place: int) -> None:
    other = "0" if CLEAR[place] != "0" else "1"
    assert parse_api_key(CLEAR[:place] + other + CLEAR[place + 1 :]) is None


@pytest.mark.parametrize(
    "text", ["", "ilk", "ilk__", "ilk_x_y", CLEAR[:-1], CLEAR + "0", CLEAR.upper(), "é" * 40, "ilk_" * 9]
)
def test_what_is_no_key_is_none(text: str) -> None:
    assert parse_api_key(text) is None


@shows("R-SEC-2", part="hash")
def test_the_stored_hash_does_not_hold_the_secret() -> None:
    found = parse_api_key(CLEAR)
    assert found is not None
    assert found.secret.encode() not in hash_key_secret(found.secret)
    assert not is_matching_secret(found.secret[:-1], hash_key_secret(found.secret))


@shows("R-SEC-2", part="constant time")
def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bytes, bytes]] = []

    def noted(one: bytes, other: bytes) -> bool:
        asked.append((one, other))
        return True

    monkeypatch.setattr("hmac.compare_digest", noted)
    assert is_matching_secret("secret", b"stored")
    assert asked == [(hash_key_secret("secret"), b"stored")]
