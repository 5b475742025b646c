"""What the services do when they are asked to change something, and what the effect log says of it."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from demo.storage.store import Store
from tests.doubles.company import Company
from tests.proves import proves

REFUND = {"order_id": "A-1001", "amount": "29.90", "currency": "USD", "reason": "Arrived broken"}
MESSAGE = {"to": "orders@corner-cafe.example", "subject": "Refund", "text": "On its way.", "reference": "r-1"}
ENTRY = {"account": "refunds", "amount": "-29.90", "memo": "A-1001"}


def refund(company: Company, key: str = "k-1", **changes: Any) -> httpx2.Response:
    return company.http.post(
        company.url + "/payments/refunds", json=REFUND | changes, headers={"Idempotency-Key": key}
    )


def post(company: Company, path: str, document: Any, **headers: str) -> httpx2.Response:
    return company.http.post(company.url + path, json=document, headers=headers)


@proves("R-TOOL-19", part="payments of the demo company")
def test_a_refund_is_made_and_can_be_read_back(company: Company) -> None:
    made = refund(company)
    assert made.status_code == 201
    assert company.get(f"/payments/refunds/{made.json()['id']}") == made.json()
    assert company.get("/payments/refunds", order_id="A-1001")["refunds"] == [made.json()]
    assert company.get("/payments/refunds", key="k-1")["refunds"] == [made.json()]
    assert company.get("/orders/A-1001")["status"] == "partially_refunded"


def test_the_same_key_is_the_same_refund(company: Company) -> None:
    first, second = refund(company), refund(company, amount="29.9")
    assert first.content == second.content
    assert (first.headers["idempotent-replay"], second.headers["idempotent-replay"]) == ("false", "true")
    assert [effect["key"] for effect in company.effects("payments")] == ["k-1"]


def test_the_same_key_at_the_same_moment_is_the_same_refund(company: Company) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: refund(company).content, range(16)))
    assert len(set(answers)) == len(company.effects("payments")) == 1


def test_a_key_belongs_to_one_content(company: Company) -> None:
    refund(company)
    other = refund(company, reason="Changed their mind")
    assert (other.status_code, other.json()["error"]) == (409, "key_used_for_another_refund")
    assert len(company.effects("payments")) == 1


def test_no_more_than_the_total_is_given_back(company: Company) -> None:
    assert refund(company, "k-1", amount="100.00").status_code == 201
    too_much = refund(company, "k-2", amount="29.91")
    assert (too_much.status_code, too_much.json()["error"]) == (422, "more_than_remains")
    assert refund(company, "k-3", amount="29.90").status_code == 201
    assert company.get("/orders/A-1001")["status"] == "refunded"
    assert company.get("/policy", order_id="A-1001")["rule"] == "already-refunded"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"order_id": "A-9999"}, 404),
        ({"currency": "EUR"}, 422),
        ({"amount": "0.00"}, 422),
        ({"currency": "XXX"}, 400),
        ({"amount": 29.9}, 400),
        ({"amount": "29.905"}, 400),
        ({"amount": "-1.00"}, 400),
        ({"amount": "NaN"}, 400),
        ({"amount": "\u0663.00"}, 400),
        ({"amount": "29.90\n"}, 400),
        ({"order_id": None}, 400),
        ({"tip": "1.00"}, 400),
    ],
)
def test_a_bad_refund_changes_nothing(company: Company, changes: dict[str, Any], status: int) -> None:
    assert refund(company, **changes).status_code == status
    assert company.effects() == []


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": ""}, {"Idempotency-Key": "k" * 256}])
def test_a_refund_needs_a_key(company: Company, headers: dict[str, str]) -> None:
    answer = company.http.post(company.url + "/payments/refunds", json=REFUND, headers=headers)
    assert answer.status_code == 400
    assert company.effects() == []


def test_mail_sent_twice_is_two_messages_whatever_the_key(company: Company) -> None:
    for _ in range(2):
        assert post(company, "/mail/messages", MESSAGE, **{"Idempotency-Key": "k-1"}).status_code == 201
    assert len(company.get("/mail/messages", reference="r-1")["messages"]) == 2
    assert [(e["key"], e["reference"]) for e in company.effects("mail")] == [("k-1", "r-1")] * 2


def test_a_message_is_found_by_its_reference_alone(company: Company) -> None:
    sent = post(company, "/mail/messages", MESSAGE | {"text": "Ваш возврат ✅"}).json()
    assert company.get("/mail/messages", reference="r-1")["messages"] == [sent]
    assert company.get("/mail/messages", reference="r-2")["messages"] == []


@pytest.mark.parametrize(
    "changes",
    [{"to": "nobody"}, {"to": "a@b\nbcc: c@d"}, {"subject": "a\r\nb"}, {"text": ""}, {"reference": ""}],
)
def test_a_bad_message_is_not_sent(company: Company, changes: dict[str, str]) -> None:
    assert post(company, "/mail/messages", MESSAGE | changes).status_code == 400
    assert company.effects() == []


def test_the_ledger_can_be_written_and_not_asked(company: Company) -> None:
    assert post(company, "/ledger/entries", ENTRY).status_code == 201
    assert company.http.get(company.url + "/ledger/entries").status_code == 405
    [effect] = company.effects("ledger")
    assert (effect["action"], effect["reference"], effect["body"]["amount"]) == ("post", "refunds", "-29.90")


def test_the_log_can_be_followed_from_a_number(company: Company) -> None:
    for _ in range(3):
        post(company, "/ledger/entries", ENTRY)
    first, *rest = company.effects()
    assert company.effects(since=first["id"]) == rest
    assert company.effects("mail") == []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"account": "\\ud800", "amount": "1"}', "application/json", 400),
        (b"[" * 20_000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b'{"memo": "' + b"x" * 65_536 + b'"}', "application/json", 413),
    ],
)
def test_a_bad_body_is_refused(company: Company, body: bytes, kind: str, status: int) -> None:
    answer = company.http.post(company.url + "/ledger/entries", content=body, headers={"content-type": kind})
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "detail"}
    assert company.effects() == []


def test_a_page_in_a_browser_cannot_write(company: Company) -> None:
    assert post(company, "/ledger/entries", ENTRY, Origin="https://elsewhere.example").status_code == 403
    assert company.effects() == []


def test_what_was_done_survives_a_kill(company: Company) -> None:
    refund(company)
    before = company.effects()
    company.restart()
    assert company.effects() == before
    assert refund(company).headers["idempotent-replay"] == "true"


def test_the_first_day_comes_back(company: Company) -> None:
    refund(company)
    company.reset()
    assert company.effects() == company.requests() == []
    assert company.get("/orders/A-1001")["refunded"] == "0.00"


@pytest.mark.parametrize("statement", ["update effects set service = 'x'", "delete from effects"])
def test_the_effect_log_refuses_to_be_changed(scratch: Path, statement: str) -> None:
    store = Store(scratch)
    with store.open_transaction():
        store.log("mail", "send", key=None, reference="r-1", body={})
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        store.rows(statement)
    store.close()
