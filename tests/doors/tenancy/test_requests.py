"""What every door of the API shares, seen from outside: keys, scopes, hostile addresses, pages."""

import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client

from tenancy.actions import create_key, revoke_key
from tenancy.core.keys import SECRET_BYTES, format_api_key
from tenancy.core.roles import Role
from tenancy.db.ids import fresh_id
from tests.conftest import House
from tests.proves import proves

RUNS, TASKS = "/api/v1/runs", "/api/v1/tasks"
FIRST = str(UUID(int=1))


def packed(*parts: Any) -> str:
    """A cursor of these parts, as ours are packed."""
    return urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=True)


@pytest.fixture
def bearer(house: House) -> dict[str, str]:
    """The header of a client of the house."""
    return {"Authorization": f"Bearer {house.people.client_key.clear}"}


def problem(response: Any) -> tuple[int, str, str]:
    """Status, code and media type of a refusal."""
    return response.status_code, response.json()["code"], response["Content-Type"]


def test_a_key_opens_the_door(client: Client, bearer: dict[str, str]) -> None:
    assert client.get(RUNS, headers=bearer).status_code == 200


@proves("Z6", part="401")
def test_no_key_and_a_wrong_one_are_401_with_the_way_in(house: House, client: Client) -> None:
    forged = format_api_key(house.people.client_key.key.id, bytes(SECRET_BYTES))
    for header in (None, "Bearer", "Bearer a b", "Bearer nonsense", f"Bearer {forged}", "Bearer \xe9"):
        response = client.get(RUNS, headers={"Authorization": header} if header else {})
        assert response.status_code == 401, header
        assert response["WWW-Authenticate"].startswith("Bearer")
        assert response["Content-Type"] == "application/problem+json"


@proves("Z6", part="revoked and expired are 401")
def test_revoked_and_expired_keys_are_401(house: House, client: Client) -> None:
    revoked = create_key(house.tenant.id, Role.CLIENT)
    revoke_key(house.tenant.id, revoked.key.id)
    expired = create_key(house.tenant.id, Role.CLIENT, expires_in=timedelta(microseconds=1))
    for key, code in ((revoked, "key-revoked"), (expired, "key-expired")):
        answer = client.get(RUNS, headers={"Authorization": f"Bearer {key.clear}"})
        assert problem(answer) == (401, code, "application/problem+json")


class Keeping(logging.Handler):
    """Keeps every record."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.records.append(record)


@contextmanager
def everything_logged() -> Iterator[list[logging.LogRecord]]:
    """Whatever any logger says meanwhile, at whatever level."""
    keeping, root = Keeping(), logging.getLogger()
    level = root.level
    root.addHandler(keeping)
    root.setLevel(logging.DEBUG)
    try:
        yield keeping.records
    finally:
        root.removeHandler(keeping)
        root.setLevel(level)


@proves("Z6", part="never logged")
def test_no_key_is_ever_logged(house: House, client: Client) -> None:
    good, gone = house.people.client_key.clear, create_key(house.tenant.id, Role.CLIENT)
    revoke_key(house.tenant.id, gone.key.id)
    with everything_logged() as records:
        for clear in (good, gone.clear, good[:-1] + "!"):
            client.get(RUNS, headers={"Authorization": f"Bearer {clear}"})
    logged = "".join(record.getMessage() + str(record.__dict__) for record in records)
    assert logged
    assert not [clear for clear in (good, gone.clear) if clear.rsplit("_", 1)[1][:20] in logged]


@proves("R-SEC-2", part="scopes at the door")
def test_a_scope_that_is_missing_is_403_and_says_which(house: House, client: Client) -> None:
    auditor = create_key(house.tenant.id, Role.AUDITOR)
    response = client.post(
        TASKS, {}, content_type="application/json", headers={"Authorization": f"Bearer {auditor.clear}"}
    )
    assert response.status_code == 403
    assert "submit" in response.json()["detail"]


@proves("W2", part="NUL in an address")
@pytest.mark.parametrize(
    "address", [f"{RUNS}?status=%00", f"{RUNS}?q=a%00b", f"{RUNS}?cursor=%00", f"{RUNS}/%00"]
)
def test_a_nul_in_an_address_is_400(client: Client, bearer: dict[str, str], address: str) -> None:
    assert problem(client.get(address, headers=bearer)) == (400, "bad-request", "application/problem+json")


@proves("W2", part="more fields than are read in an address")
@pytest.mark.parametrize("path", [RUNS, "/api/v1/approvals"])
def test_an_address_of_more_fields_than_are_read_is_400(
    client: Client, bearer: dict[str, str], path: str
) -> None:
    answer = client.get(f"{path}?{'a=1&' * 1_001}", headers=bearer)
    assert problem(answer) == (400, "bad-request", "application/problem+json")


@proves("R-SEC-7", part="pages")
@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "", "1.0", "²", "٣", "9" * 5_000])
def test_a_limit_that_is_none_is_400(client: Client, bearer: dict[str, str], limit: str) -> None:
    assert problem(client.get(RUNS, {"limit": limit}, headers=bearer))[:2] == (400, "invalid-input")


@proves("R-SEC-7", part="cursors")
@pytest.mark.parametrize(
    "cursor",
    ["x", "é", "e30", "WzEsMl0", "WyJ4IiwgIngiXQ", "bnVsbA", "W10", "A" * 4_000,
     "WyIyMDI2LTAxLTAxIiwiMDE5OGEzZjAtMDAwMC03MDAwLTgwMDAtMDAwMDAwMDAwMDAxIl0",
     packed("0001-01-01T00:00:00+23:59", FIRST), packed("9999-12-31T23:59:59-00:01", FIRST),
     packed(5, FIRST)],
)  # fmt: skip
def test_a_cursor_that_is_not_ours_is_400(client: Client, bearer: dict[str, str], cursor: str) -> None:
    assert problem(client.get(RUNS, {"cursor": cursor}, headers=bearer))[:2] == (400, "cursor-invalid")


@proves("W2", part="offsets that PostgreSQL refuses")
@pytest.mark.parametrize("at", ["2026-01-01T00:00:00+23:59", "2026-01-01T00:00:00+00:00:01.000001"])
@pytest.mark.parametrize("path", [RUNS, "/api/v1/approvals"])
def test_a_cursor_says_a_moment_in_any_offset(
    client: Client, bearer: dict[str, str], path: str, at: str
) -> None:
    assert client.get(path, {"cursor": packed(at, FIRST)}, headers=bearer).json()["results"] == []


@proves("R-SEC-7", part="idempotency keys")
@pytest.mark.parametrize("key", ["", "a" * 256, "é", "a\x00b", "a\tb"])
def test_an_idempotency_key_that_is_none_is_400(client: Client, bearer: dict[str, str], key: str) -> None:
    body = {"workflow": "w", "goal": {"objective": "o"}}
    answer = client.post(
        TASKS, body, content_type="application/json", headers=bearer | {"Idempotency-Key": key}
    )
    assert problem(answer)[:2] == (400, "idempotency-key-invalid")


@proves("W2", part="at the door")
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b'"\\ud800"', 400), (b'{"a":"\\u0000"}', 400), (b"[" * 9_999, 400), (b" " * 10**7, 413)],
)
def test_hostile_bodies_are_problems(
    client: Client, bearer: dict[str, str], body: bytes, status: int
) -> None:
    answer = client.post(TASKS, body, content_type="application/json", headers=bearer)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")


def test_another_media_type_is_415(client: Client, bearer: dict[str, str]) -> None:
    assert client.post(TASKS, {"a": "b"}, headers=bearer).status_code == 415


@proves("Z1", part="same words for foreign and missing")
def test_an_id_that_is_none_is_answered_like_a_missing_one(client: Client, bearer: dict[str, str]) -> None:
    answers = [client.get(f"{RUNS}/{run}", headers=bearer) for run in (fresh_id(), "not-an-id")]
    said = [answer.json() | {"instance": ""} for answer in answers]
    assert said[0] == said[1]
    assert answers[0].status_code == 404
