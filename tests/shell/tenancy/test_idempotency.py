"""The same POST twice is one act (W1)."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from secrets import randbits
from threading import Event
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from django.db import connections
from pytest_django import Settings

from tenancy.db.process_lock import BITS
from tenancy.db.tenant_context import tenant_transaction
from tenancy.jobs import forget_answers
from tenancy.models import IdempotencyKey
from tenancy.rest import idempotency
from tenancy.rest.idempotency import (
    LIFE,
    PATIENCE,
    KeyInUse,
    KeyReused,
    StoredResponse,
    execute_once,
    forget_expired,
)
from tests.conftest import House
from tests.proves import proves

PATH = "/api/v1/tasks"


class Acts:
    """Something that is done, and how often."""

    def __init__(self, house: House) -> None:
        self.house, self.done = house, 0
        self.principal = house.people.submitter.id

    def __call__(self) -> StoredResponse:
        self.done += 1
        return StoredResponse(202, {"number": self.done})

    def post(
        self,
        key: str | None = "k",
        body: Any = None,
        path: str = PATH,
        act: Callable[[], StoredResponse] | None = None,
    ) -> StoredResponse:
        """One POST."""
        return execute_once(self.house.tenant.id, self.principal, key, path, body or {"a": 1}, act or self)

    def aged(self, by: timedelta) -> None:
        """As if all that was posted had been posted earlier."""
        with tenant_transaction(self.house.tenant.id):
            for row in IdempotencyKey.objects.all():
                row.created_at, row.expires_at = row.created_at - by, row.expires_at - by
                row.save()


@pytest.fixture
def acts(house: House) -> Acts:
    return Acts(house)


@proves("W1", part="twice")
def test_the_same_key_twice_is_done_once_and_answered_twice(acts: Acts) -> None:
    first, second = acts.post(), acts.post()
    assert acts.done == 1
    assert (second.status, second.body) == (first.status, first.body)
    assert (first.replayed, second.replayed) == (False, True)


@proves("W1", part="an answer that PostgreSQL takes for no JSON")
@pytest.mark.parametrize("body", [{"order": "A-1\0", "\0": None}, [1, "\x7f"], "\0", 1.5, None])
def test_any_answer_is_given_twice_as_it_was(acts: Acts, body: Any) -> None:
    first, second = (acts.post(act=lambda: StoredResponse(200, body)) for _ in range(2))
    assert (first.body, second.body, second.replayed) == (body, body, True)


@proves("W1", part="another body")
def test_the_same_key_with_another_body_is_refused(acts: Acts) -> None:
    acts.post(body={"a": 1})
    with pytest.raises(KeyReused):
        acts.post(body={"a": 2})
    assert acts.done == 1


def test_the_order_of_a_bodys_names_is_no_difference(acts: Acts) -> None:
    acts.post(body={"a": 1, "b": 2})
    assert acts.post(body={"b": 2, "a": 1}).replayed


@proves("W1", part="in parallel")
def test_while_the_first_is_under_way_the_second_is_refused(acts: Acts) -> None:
    begun, go_on = Event(), Event()

    def slowly() -> StoredResponse:
        begun.set()
        assert go_on.wait(10)
        return acts()

    def first() -> StoredResponse:
        try:
            return acts.post(act=slowly)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(first)
        assert begun.wait(10)
        with pytest.raises(KeyInUse):
            acts.post()
        go_on.set()
        assert running.result().status == 202
    assert acts.post().replayed
    assert acts.done == 1


@proves("W1", part="many at once")
def test_of_many_at_once_one_is_done(acts: Acts) -> None:
    def post(_: int) -> StoredResponse | None:
        try:
            return acts.post()
        except KeyInUse:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        answers = [answer for answer in threads.map(post, range(24)) if answer is not None]
    assert acts.done == 1
    assert sum(not answer.replayed for answer in answers) == 1
    assert {answer.body["number"] for answer in answers} == {1}


@proves("W1", part="after its life")
def test_after_its_life_a_key_is_new(acts: Acts) -> None:
    acts.post()
    acts.aged(LIFE)
    assert not acts.post(body={"a": 2}).replayed
    assert acts.done == 2


@proves("W6", part="claim")
def test_a_claim_whose_process_died_is_void_after_a_minute(acts: Acts) -> None:
    with pytest.raises(SystemExit):
        acts.post(act=_dies)
    with tenant_transaction(acts.house.tenant.id):
        IdempotencyKey.objects.create(
            tenant=acts.house.tenant, principal=acts.principal, key="left", path=PATH, body_digest=b"\0" * 32,
            expires_at=acts.house.tenant.created_at + LIFE,
        )  # fmt: skip
    with pytest.raises(KeyReused):
        acts.post("left")
    acts.aged(PATIENCE)
    assert not acts.post("left").replayed


@proves("W6", part="the claim of a process that died")
def test_a_claim_whose_process_died_is_taken_over_at_once(
    acts: Acts, monkeypatch: pytest.MonkeyPatch, superuser: psycopg.Connection
) -> None:
    with another_process(superuser) as lock:
        with monkeypatch.context() as patch:
            patch.setattr(idempotency, "process_lock_number", lambda: lock)
            digests = idempotency._compute_request_digests(acts.house.tenant.id, {"a": 1})
            claim = idempotency._claim_key(acts.house.tenant.id, acts.principal, "k", PATH, digests)
        assert isinstance(claim, UUID)
        with pytest.raises(KeyInUse) as refused:
            acts.post()
        assert refused.value.data == {"retry_after": 1}
    with pytest.raises(KeyReused):
        acts.post(body={"a": 2})
    assert (acts.post().replayed, acts.done) == (False, 1)
    idempotency._store_response(acts.house.tenant.id, claim, StoredResponse(202, {"number": "late"}))
    assert acts.post().body == {"number": 1}, "what the first process says after all changes nothing"


@contextmanager
def another_process(superuser: psycopg.Connection) -> Iterator[int]:
    """The lock of a process that lives for the length of the block."""
    number = randbits(BITS)
    superuser.execute("SELECT pg_advisory_lock(%s)", (number,))
    try:
        yield number
    finally:
        superuser.execute("SELECT pg_advisory_unlock(%s)", (number,))


def body_digest(body: Any) -> bytes:
    """The digest a claim has of a body."""
    return sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).digest()


def _dies() -> StoredResponse:
    raise SystemExit


def test_an_act_that_fails_can_be_tried_again(acts: Acts) -> None:
    def fails() -> StoredResponse:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        acts.post(act=fails)
    assert not acts.post().replayed


def test_without_a_key_every_post_is_done(acts: Acts) -> None:
    assert [acts.post(None).body, acts.post(None).body] == [{"number": 1}, {"number": 2}]


@proves("Z3", part="idempotency keys")
def test_a_key_is_its_callers_own(acts: Acts) -> None:
    acts.post()
    acts.principal = acts.house.people.operator.id
    assert not acts.post(body={"a": 2}).replayed


def test_a_key_is_an_addresses_own(acts: Acts) -> None:
    acts.post()
    assert not acts.post(path=f"{PATH}/other").replayed


@proves("W1", part="an address of any length")
@pytest.mark.parametrize("tail", ["x" * 300, "é" * 60_000])
def test_a_key_counts_at_an_address_of_any_length(acts: Acts, tail: str) -> None:
    first, second = (acts.post(path=f"{PATH}/{tail}") for _ in range(2))
    assert (first.replayed, second.replayed) == (False, True)
    assert not acts.post(path=f"{PATH}/{tail}/other").replayed


def test_old_answers_are_forgotten_and_young_ones_kept(acts: Acts) -> None:
    acts.post("old")
    acts.aged(LIFE)
    acts.post("young")
    forget_answers()
    assert forget_expired(acts.house.tenant.id) == 0
    assert acts.post("young").replayed
    with tenant_transaction(acts.house.tenant.id):
        assert [row.key for row in IdempotencyKey.objects.all()] == ["young"]


@proves("R-TRACE-5", part="the digest of a request with a secret")
def test_a_digest_of_a_body_needs_the_secret_and_a_former_secret_still_counts(
    acts: Acts, settings: Settings
) -> None:
    acts.post()
    with tenant_transaction(acts.house.tenant.id):
        rows = IdempotencyKey.objects.filter(key="k")
        kept = bytes(rows.get().body_digest)
        assert kept != body_digest({"a": 1})
    assert acts.post().replayed
    with pytest.raises(KeyReused):
        acts.post(body={"a": 2})
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-secret-of-the-application-0123456789"
    assert acts.post().replayed
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(KeyReused):
        acts.post()
