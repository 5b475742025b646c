"""The running services, over HTTP from the real process: how they are, what ails them, their restarts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.doubles.company import Company
from tests.proves import proves

NAMES = ["web-shop", "checkout", "catalogue", "search", "stock", "card-gateway"]


def restart(company: Company, service: str = "checkout", key: str = "k-1", **more: Any) -> httpx2.Response:
    document = {"service": service, "reason": "It hangs."} | more
    return company.http.post(company.url + "/restarts", json=document, headers={"Idempotency-Key": key})


def ail(company: Company, service: str, cause: str) -> None:
    """Set what ails a service."""
    company.http.put(company.url + "/incidents", json={"service": service, "cause": cause}).raise_for_status()


def test_the_first_day_has_two_incidents_and_one_that_follows(company: Company) -> None:
    found = {one["name"]: one["status"] for one in company.get("/services")["services"]}
    assert list(found) == NAMES
    assert {name: status for name, status in found.items() if status != "healthy"} == {
        "web-shop": "degraded",
        "checkout": "down",
        "search": "degraded",
    }
    assert company.get("/services/web-shop")["failing_dependencies"] == ["checkout", "search"]


def test_log_and_figures_tell_the_cause(company: Company) -> None:
    logs, metrics = company.get("/services/checkout/logs"), company.get("/services/checkout/metrics")
    assert any("connection leak" in line["text"] for line in logs["lines"])
    assert logs["errors"] == 2
    figures = {one["name"]: (one["now"], one["usual"]) for one in metrics["metrics"]}
    assert figures["connections_in_use"] == ("40", "10")
    assert company.get("/services/checkout/logs", limit=1)["lines"] == logs["lines"][-1:]


@pytest.mark.parametrize(
    ("cause", "healthy"), [("pool_exhausted", True), ("memory_leak", True), ("bad_deploy", False)]
)
def test_a_restart_cures_what_a_restart_can_cure(company: Company, cause: str, healthy: bool) -> None:
    ail(company, "checkout", cause)
    assert not company.get("/services/checkout")["healthy"]
    made = restart(company).json()
    after = company.get("/services/checkout")
    assert (made["instance"], after["instance"], after["healthy"]) == ("checkout-2", "checkout-2", healthy)


def test_a_cured_service_lets_those_above_it_recover(company: Company) -> None:
    ail(company, "search", "none")
    restart(company)
    assert company.get("/services/web-shop")["healthy"]
    assert company.get("/incidents") == {"incidents": {}}


@proves("R-TOOL-19", part="services of the demo company")
def test_a_restart_is_one_effect_however_often_its_key_comes(company: Company) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: restart(company).content, range(16)))
    assert len(set(answers)) == 1
    (effect,) = company.effects("services")
    assert (effect["action"], effect["key"], effect["reference"]) == ("restart", "k-1", "checkout")
    assert company.get("/restarts", key="k-1")["restarts"] == [effect["body"]]
    assert company.get("/restarts", service="stock")["restarts"] == []


@pytest.mark.parametrize(
    ("more", "headers", "status", "code"),
    [
        ({}, {}, 400, "key_required"),
        ({"service": "kitchen"}, {"Idempotency-Key": "k"}, 404, "not_found"),
        ({"reason": ""}, {"Idempotency-Key": "k"}, 400, "invalid_body"),
        ({"force": True}, {"Idempotency-Key": "k"}, 400, "invalid_body"),
    ],
)
def test_a_bad_restart_is_refused_and_does_nothing(
    company: Company, more: dict[str, Any], headers: dict[str, str], status: int, code: str
) -> None:
    document = {"service": "checkout", "reason": "It hangs."} | more
    answer = company.http.post(company.url + "/restarts", json=document, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert company.effects() == []
    assert company.get("/services/checkout")["instance"] == "checkout-1"


def test_a_key_belongs_to_one_restart(company: Company) -> None:
    restart(company)
    other = restart(company, service="stock")
    assert (other.status_code, other.json()["error"]) == (409, "key_used_for_another_restart")


def test_restarts_and_incidents_survive_a_power_cut_and_end_with_a_reset(company: Company) -> None:
    restart(company)
    ail(company, "stock", "memory_leak")
    company.restart()
    assert company.get("/services/checkout")["instance"] == "checkout-2"
    assert company.get("/incidents")["incidents"] == {"search": "bad_deploy", "stock": "memory_leak"}
    company.reset()
    assert company.get("/incidents")["incidents"] == {"checkout": "pool_exhausted", "search": "bad_deploy"}


@pytest.mark.parametrize("path", ["/services/kitchen", "/services/kitchen/logs", "/services/kitchen/metrics"])
def test_a_service_that_is_not_there_is_refused_by_name(company: Company, path: str) -> None:
    answer = company.http.get(company.url + path)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
