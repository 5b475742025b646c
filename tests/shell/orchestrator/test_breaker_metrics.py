"""Breakers that tripped are counted where the runs are driven, and a worker can be asked (R-BUDGET-12)."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from celery.signals import worker_ready
from pytest_django.fixtures import Settings

from config.celery import _tell_prometheus
from config.devstack.process_specs import free_port
from config.observability.metrics import serve_web, start_metrics_server
from orchestrator.console.queries.tripped_breakers import breakers_of
from orchestrator.outbound.actions import TenantCircuits
from orchestrator.outbound.gateways.counters import BREAKER, TALLY
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.doubles.company import Company
from tests.factories.tripping import BREAKERS
from tests.factories.world import World, company_at, make_world
from tests.proves import proves


@pytest.fixture
def world(house: House, company: Company) -> Iterator[World]:
    """A furnished house whose tools talk to the demo company."""
    with company_at(company.url):
        yield make_world(house)


def told(port: int) -> dict[str, float]:
    """The samples a process tells, by name and labels."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (x.rsplit(" ", 1) for x in lines if not x.startswith("#"))}


def counted(port: int, breaker: str) -> dict[str, float]:
    """How often a breaker was counted, by its sample."""
    named = f'interlock_breakers_tripped_total{{breaker="{breaker}",'
    return {name: value for name, value in told(port).items() if name.startswith(named)}


@proves("R-BUDGET-12", part="metric")
@pytest.mark.parametrize("breaker", BREAKERS)
def test_every_breaker_that_trips_is_counted_once_where_the_worker_tells_it_and_is_a_line_of_the_run(
    world: World, company: Company, settings: Settings, breaker: str
) -> None:
    settings.INTERLOCK_METRICS_PORT = free_port()
    _tell_prometheus()
    before = counted(settings.INTERLOCK_METRICS_PORT, breaker)
    run = BREAKERS[breaker](world, company, settings)
    tripped = [body for body in world.said(run, "breaker_tripped") if body["breaker"] == breaker]
    assert tripped
    assert all(body["reason"] for body in tripped)
    after = counted(settings.INTERLOCK_METRICS_PORT, breaker)
    reasons = Counter(body["reason"] for body in tripped)
    assert {name: value - before.get(name, 0.0) for name, value in after.items()} == {
        **dict.fromkeys(after, 0.0),
        **{
            f'interlock_breakers_tripped_total{{breaker="{breaker}",reason="{reason}"}}': times
            for reason, times in reasons.items()
        },
    }
    with tenant_transaction(world.id):
        assert breaker in {line.breaker for line in breakers_of(world.run(run))}


def test_breakers_are_no_calls() -> None:
    TALLY.add(BREAKER, "budget_gate", "test_reason")
    port = free_port()
    assert start_metrics_server("127.0.0.1", port)
    samples = told(port)
    assert samples['interlock_breakers_tripped_total{breaker="budget_gate",reason="test_reason"}'] == 1
    assert not any('gateway="breaker"' in name for name in samples)


@proves("R-BUDGET-13", part="metric")
def test_changes_of_circuits_are_told_and_are_no_calls(world: World) -> None:
    sample = 'interlock_circuits_changed_total{state="open",subject="orders.lookup"}'
    port = free_port()
    assert start_metrics_server("127.0.0.1", port)
    before = told(port).get(sample, 0.0)
    TenantCircuits(world.id).trip("tool", "orders.lookup", "timeout")
    samples = told(port)
    assert samples[sample] == before + 1
    assert not any('gateway="circuit"' in name for name in samples)


def test_a_worker_serves_only_where_a_port_is_given(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "config.observability.metrics.start_metrics_server", lambda host, port: asked.append((host, port))
    )
    settings.INTERLOCK_METRICS_PORT = None
    _tell_prometheus()
    settings.INTERLOCK_METRICS_PORT = 9_100
    _tell_prometheus()
    assert asked == [("127.0.0.1", 9_100)]
    assert any(receiver is _tell_prometheus for receiver in worker_ready._live_receivers(None))  # type: ignore[attr-defined]


@proves("R-SEC-11", part="metrics on an internal port")
def test_the_web_process_serves_metrics_on_a_port_of_its_own_only_where_one_is_given(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "config.observability.metrics.start_metrics_server", lambda host, port: asked.append((host, port))
    )
    settings.INTERLOCK_WEB_METRICS_PORT, settings.INTERLOCK_HOST = None, "0.0.0.0"  # noqa: S104 - not bound
    serve_web()
    settings.INTERLOCK_WEB_METRICS_PORT = 9_101
    serve_web()
    assert asked == [("127.0.0.1", 9_101)]


def test_a_port_that_is_taken_stops_no_worker() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert not start_metrics_server("127.0.0.1", other.getsockname()[1])
