"""Health endpoints: liveness and readiness. (R-TRACE-14)

`/livez` queries no other service. `/readyz` queries the database, which decides, and the broker, which does
not: a run accepted while the broker is down is found by the sweep, so a dead broker degrades the service but
is no reason to turn work away.
"""

from __future__ import annotations

from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from psycopg_pool import PoolTimeout

BROKER_SECONDS = 1.0


def database_answers() -> bool:
    """Return whether PostgreSQL answers a query."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, PoolTimeout, OSError):
        return False
    return True


def broker_answers(url: str) -> bool:
    """Return whether the broker at `url` answers a PING within a second."""
    try:
        client = redis.Redis.from_url(
            url, socket_timeout=BROKER_SECONDS, socket_connect_timeout=BROKER_SECONDS
        )
        with client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


@never_cache
@require_safe
def livez(_request: HttpRequest) -> HttpResponse:
    """Answer 200 as long as the process serves requests."""
    return JsonResponse({"status": "alive"})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 with `ready` or `degraded` (broker down), 503 with `unready` (database down)."""
    database, broker = database_answers(), broker_answers(settings.REDIS_URL)
    word = "unready" if not database else "ready" if broker else "degraded"
    body: dict[str, Any] = {"status": word, "checks": {"database": database, "broker": broker}}
    return JsonResponse(body, status=200 if database else 503)
