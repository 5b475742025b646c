"""Prometheus metrics of this process: requests, gateway calls, tripped breakers, and the process itself.

Each process exports its own numbers on its own port; the web server also exports them under /metrics to
clients with the operator's token. The metrics name no tenant, run or person.

Spec: R-API-1, R-BUDGET-12, R-SEC-11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hmac import compare_digest
from time import perf_counter

import structlog
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    Counter,
    Histogram,
    generate_latest,
    start_http_server,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from orchestrator.outbound.gateways.counters import BREAKER, CIRCUIT, TALLY

log = structlog.get_logger(__name__)
REQUESTS = Counter("interlock_requests", "Answered requests.", ("method", "route", "status"))
SECONDS = Histogram("interlock_request_seconds", "How long an answer took.", ("method", "route"))
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Calls(Collector):
    """Collects the gateways' own counts and the breakers that tripped."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the counters of calls, tripped breakers and circuit changes.

        Calls are counted by gateway, subject and outcome; breakers by name and reason; circuit changes by
        subject and state.
        """
        counted = CounterMetricFamily(
            "interlock_calls",
            "Calls that gateways made or refused.",
            labels=("gateway", "subject", "outcome"),
        )
        tripped = CounterMetricFamily(
            "interlock_breakers_tripped",
            "Breakers that tripped in runs of this process.",
            labels=("breaker", "reason"),
        )
        switched = CounterMetricFamily(
            "interlock_circuits_changed",
            "Changes of circuits' states that this process made.",
            labels=("subject", "state"),
        )
        for labels, count in sorted(TALLY.read().items()):
            if labels[0] == BREAKER:
                tripped.add_metric(labels[1:], count)
            elif labels[0] == CIRCUIT:
                switched.add_metric(labels[1:], count)
            else:
                counted.add_metric(labels, count)
        yield from (counted, tripped, switched)


REGISTRY.register(Calls())


class MeasureRequests:
    """Counts and times every request by route, never by address, which an outsider chooses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request and measure it."""
        started = perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        route = match.route if match is not None else "(none)"
        method = request.method if request.method in METHODS else "(other)"
        REQUESTS.labels(method, route, response.status_code).inc()
        SECONDS.labels(method, route).observe(perf_counter() - started)
        return response


@never_cache
@require_safe
def export_metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics in Prometheus' text format to the holder of the operator's token.

    Raises: Http404 if no token is configured.
    """
    token: str | None = settings.INTERLOCK_METRICS_TOKEN
    if token is None:
        raise Http404
    word, _, given = request.headers.get("Authorization", "").partition(" ")
    if word.lower() != "bearer" or not compare_digest(given.strip().encode(), token.encode()):
        return HttpResponse(
            "The token of the metrics is missing or wrong.\n", status=401, content_type="text/plain",
            headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )  # fmt: skip
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


def start_metrics_server(host: str, port: int) -> bool:
    """Serve the metrics on this process's own port and return whether that succeeded.

    The process also works without the port.
    """
    try:
        start_http_server(port, addr=host)
    except OSError as error:
        log.error("metrics.not_served", host=host, port=port, error=str(error))
        return False
    return True


def serve_web() -> None:
    """Serve the metrics on the web process's own port, if one is configured."""
    if settings.INTERLOCK_WEB_METRICS_PORT is not None:
        start_metrics_server(settings.INTERLOCK_METRICS_HOST, settings.INTERLOCK_WEB_METRICS_PORT)
