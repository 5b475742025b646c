"""How often a key may knock, what it is told, and what the house tells of itself (R-API-1)."""

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from config.devstack.embedded import EmbeddedValkey
from tenancy.rest.throttling import PerKey
from tests.conftest import House
from tests.proves import proves

RUNS = "/api/v1/runs"
TOKEN = "a token of the operator"


@pytest.fixture
def bearer(house: House, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(PerKey, "_quiet_until", 0.0)
    return {"Authorization": f"Bearer {house.people.client_key.clear}"}


@proves("R-API-1", part="rate-limit headers")
def test_a_caller_sees_what_is_left_and_is_refused_beyond_it(
    client: Client, bearer: dict[str, str], valkey: EmbeddedValkey, settings: Settings
) -> None:
    settings.INTERLOCK_RATE_PER_MINUTE = 3
    answers = [client.get(RUNS, headers=bearer) for _ in range(7)]
    # The window may turn once on the way.
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert [answer.status_code for answer in answers[:3]] == [200, 200, 200]
    assert answers[0]["RateLimit-Policy"] == '"key";q=3;w=60'
    assert answers[0]["RateLimit"].startswith('"key";r=2;t=')
    assert refused[0]["Content-Type"] == "application/problem+json"
    assert 1 <= int(refused[0]["Retry-After"]) <= 60
    assert refused[0]["RateLimit"].startswith('"key";r=0;t=')


def test_without_a_broker_nobody_is_refused(
    client: Client, bearer: dict[str, str], settings: Settings
) -> None:
    settings.INTERLOCK_RATE_PER_MINUTE = 1
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answers = [client.get(RUNS, headers=bearer) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert "RateLimit" not in answers[0]


@proves("R-API-1", part="metrics")
def test_metrics_count_requests_by_route_and_name_nobody(
    client: Client, bearer: dict[str, str], settings: Settings
) -> None:
    settings.INTERLOCK_METRICS_TOKEN = TOKEN
    client.get(RUNS, headers=bearer)
    client.get(f"{RUNS}/no-such-run", headers=bearer)
    client.get("/etc/passwd")
    told = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert told["Content-Type"].startswith("text/plain")
    text = told.content.decode()
    assert 'interlock_requests_total{method="GET",route="api/v1/runs",status="200"}' in text
    assert 'route="(none)",status="404"' in text
    assert "passwd" not in text
    assert "no-such-run" not in text
    assert "process_cpu_seconds_total" in text


@proves("R-SEC-11", part="metrics for a token alone")
def test_metrics_on_the_web_port_need_the_operators_token(
    client: Client, bearer: dict[str, str], settings: Settings
) -> None:
    settings.INTERLOCK_METRICS_TOKEN = None
    shown = {"Authorization": f"Bearer {TOKEN}"}
    for headers in ({}, bearer, shown, {"Authorization": "Bearer "}, {"Authorization": "Bearer None"}):
        assert client.get("/metrics", headers=headers).status_code == 404, headers
    settings.INTERLOCK_METRICS_TOKEN = TOKEN
    for headers in ({}, bearer, {"Authorization": f"Basic {TOKEN}"}, {"Authorization": f"Bearer {TOKEN}x"}):
        answer = client.get("/metrics", headers=headers)
        assert answer.status_code == 401, headers
        assert b"interlock_requests" not in answer.content
        assert answer["WWW-Authenticate"].startswith("Bearer")
    assert client.get("/metrics", headers=shown).status_code == 200
