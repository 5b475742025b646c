"""The company misbehaves as it was told to, and its log says what really happened."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from tests.doubles.company import Company

BODIES = {
    "payments": ("/payments/refunds", {"order_id": "A-1001", "amount": "1.00", "currency": "USD"}),
    "mail": ("/mail/messages", {"to": "a@b.example", "subject": "s", "text": "t", "reference": "r"}),
    "ledger": ("/ledger/entries", {"account": "refunds", "amount": "1.00"}),
}
READS = {"orders": "/orders/A-1001", "policy": "/policy?order_id=A-1001"}
WRITING = pytest.mark.parametrize("service", sorted(BODIES))


def write(company: Company, service: str, timeout: float = 10) -> httpx2.Response:
    path, document = BODIES[service]
    headers = {"Idempotency-Key": "k-1"}
    return company.http.post(company.url + path, json=document, headers=headers, timeout=timeout)


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition holds within five seconds."""
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@contextmanager
def held(company: Company, service: str) -> Iterator[None]:
    """Somebody has written to the service, which holds the request, until the fault or the company ends."""
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write, company, service)
        company.wait_until_held(service)
        yield
        with suppress(httpx2.TransportError):
            writing.result(10)


@WRITING
def test_fail_does_nothing(company: Company, service: str) -> None:
    company.faults(service, "fail", times=1)
    assert write(company, service).status_code == 503
    assert company.effects() == []
    assert write(company, service).status_code == 201


@WRITING
def test_commit_then_fail_has_done_it(company: Company, service: str) -> None:
    company.faults(service, "commit_then_fail", times=1)
    assert write(company, service).status_code == 500
    assert len(company.effects(service)) == 1


@WRITING
def test_hang_does_nothing_for_a_client_that_leaves(company: Company, service: str) -> None:
    company.faults(service, "hang")
    with pytest.raises(httpx2.ReadTimeout):
        write(company, service, timeout=0.2)
    assert eventually(lambda: [entry["status"] for entry in company.requests(service)] == [0])
    assert company.effects() == []


@WRITING
def test_commit_then_hang_has_done_it(company: Company, service: str) -> None:
    company.faults(service, "commit_then_hang")
    with held(company, service):
        assert len(company.effects(service)) == 1
        company.faults(service, "none")
    assert len(company.effects(service)) == 1


@WRITING
def test_slow_is_done_even_for_a_client_that_left(company: Company, service: str) -> None:
    company.faults(service, "slow", seconds=0.5)
    with pytest.raises(httpx2.ReadTimeout):
        write(company, service, timeout=0.1)
    assert eventually(lambda: len(company.effects(service)) == 1)
    # By its own log: how soon anybody looks is the machine's. An event loop's timer counts from the beginning
    # of the turn in which it was set, and so comes a little early by any other clock.
    (asked,), (done,) = company.requests(service), company.effects(service)
    took = datetime.fromisoformat(done["at"]) - datetime.fromisoformat(asked["at"])
    assert took > timedelta(seconds=0.25)


@pytest.mark.parametrize("mode", ["hang", "commit_then_hang"])
def test_a_held_request_goes_on_when_the_fault_ends(company: Company, mode: str) -> None:
    company.faults("mail", mode)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(write, company, "mail")
        company.wait_until_held("mail")
        company.faults("mail", "none")
        assert answer.result(5).status_code == 201
    assert len(company.effects("mail")) == 1


def test_a_hang_with_an_end_goes_on_at_its_end(company: Company) -> None:
    company.faults("mail", "hang", seconds=0.1)
    assert write(company, "mail").status_code == 201


@pytest.mark.parametrize("service", sorted(READS))
@pytest.mark.parametrize(("mode", "status"), [("fail", 503), ("commit_then_fail", 500)])
def test_read_only_services_fail_too(company: Company, service: str, mode: str, status: int) -> None:
    company.faults(service, mode, times=1)
    assert company.http.get(company.url + READS[service]).status_code == status
    assert company.http.get(company.url + READS[service]).status_code == 200


def test_a_commit_fault_lets_the_look_up_pass(company: Company) -> None:
    company.faults("mail", "commit_then_fail", times=1)
    assert company.get("/mail/messages", reference="r")["messages"] == []
    assert write(company, "mail").status_code == 500
    assert len(company.get("/mail/messages", reference="r")["messages"]) == 1


def test_a_fault_can_be_for_look_ups_alone(company: Company) -> None:
    company.faults("payments", "fail", on="reads")
    assert write(company, "payments").status_code == 201
    assert company.http.get(company.url + "/payments/refunds?key=k-1").status_code == 503


def test_a_fault_counts_down_and_can_be_asked_for(company: Company) -> None:
    company.faults("ledger", "fail", times=3)
    write(company, "ledger")
    told = company.get("/faults")
    assert [(fault["service"], fault["mode"], fault["times"]) for fault in told["faults"]] == [
        ("ledger", "fail", 2)
    ]
    assert told["applied"] == {"ledger": 1}


def test_one_service_fails_alone(company: Company) -> None:
    company.faults("payments", "fail")
    assert write(company, "mail").status_code == 201


def test_the_journal_counts_every_knock(company: Company) -> None:
    company.faults("payments", "commit_then_fail", times=1)
    write(company, "payments")
    write(company, "payments")
    assert [(entry["key"], entry["status"]) for entry in company.requests("payments")] == [
        ("k-1", 500),
        ("k-1", 201),
    ]
    assert len(company.effects("payments")) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"service": "kitchen", "mode": "fail"},
        {"service": "mail", "mode": "explode"},
        {"service": "mail", "mode": "slow", "seconds": -1},
        {"service": "mail", "mode": "fail", "times": 0},
        {},
    ],
)
def test_an_unknown_fault_is_refused(company: Company, fault: dict[str, object]) -> None:
    assert company.http.put(company.url + "/faults", json=fault).status_code == 400
    assert company.get("/faults")["faults"] == []


def test_a_kill_after_the_commit_loses_nothing_and_ends_the_fault(company: Company) -> None:
    company.faults("ledger", "commit_then_hang")
    with held(company, "ledger"):
        company.restart()
    assert len(company.effects("ledger")) == 1
    assert write(company, "ledger").status_code == 201


def test_a_port_in_use_is_said_in_one_line(company: Company, scratch: Path) -> None:
    port = company.url.rpartition(":")[2]
    argv = [sys.executable, "-m", "demo", "--port", port, "--data", str(scratch)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert f"port {port}" in ended.stderr


def test_it_closes_in_time_with_requests_held(scratch: Path) -> None:
    company = Company(scratch)
    company.start()
    company.faults("mail", "hang")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(write, company, "mail")
        company.wait_until_held("mail")
        company.stop()
        assert isinstance(held.exception(5), httpx2.TransportError) or held.result().status_code == 500
    company.http.close()
