"""Rate limit per key (R-API-1): a fixed window in Valkey, reported in the headers of every response.

The limit protects against a caller in a loop; it is not a budget: money is limited in the database. Without a
broker no request is counted and none is refused.
"""

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import redis
import structlog
from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from tenancy.rest.authentication import Caller, PlatformCaller

WINDOW_SECONDS = 60
PATIENCE_SECONDS = 0.25
# After a failure no request uses the broker for this long.
QUIET_SECONDS = 2.0
log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RateStatus:
    """The remaining requests of a key in this window. `resets_in` is in seconds."""

    limit: int
    left: int
    resets_in: int

    @property
    def headers(self) -> dict[str, str]:
        """Return RateLimit-Policy and RateLimit, as defined by the IETF's draft."""
        return {
            "RateLimit-Policy": f'"key";q={self.limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"key";r={max(self.left, 0)};t={self.resets_in}',
        }


@cache
def _connect_broker(url: str) -> "redis.Redis":
    patience: dict[str, Any] = {
        "socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS,
    }  # fmt: skip
    return redis.Redis.from_url(url, **patience)


class PerKey(BaseThrottle):
    """Throttle that counts each request of a principal; 429 and Retry-After beyond the limit."""

    _quiet_until = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return whether the window has room. An unauthenticated request is refused elsewhere."""
        who = request.user
        if not isinstance(who, Caller | PlatformCaller):
            return True
        standing = self._count_request(f"rate:{who.pk}", settings.INTERLOCK_RATE_PER_MINUTE)
        if standing is None:
            return True
        self._standing = standing
        request._request.rate = standing  # type: ignore[attr-defined]  # noqa: SLF001 - read by `tenancy.web.middleware.ShowRate`
        return standing.left >= 0

    def wait(self) -> float:
        """Return the seconds until the next window."""
        return float(self._standing.resets_in)

    def _count_request(self, name: str, limit: int) -> RateStatus | None:
        now = time.time()
        window, passed = divmod(int(now), WINDOW_SECONDS)
        if time.monotonic() < PerKey._quiet_until:
            return None
        try:
            with _connect_broker(settings.REDIS_URL).pipeline(transaction=False) as pipe:
                pipe.incr(f"{name}:{window}")
                pipe.expire(f"{name}:{window}", 2 * WINDOW_SECONDS)
                count = int(pipe.execute()[0])
        except redis.RedisError as error:
            PerKey._quiet_until = time.monotonic() + QUIET_SECONDS
            log.warning("throttle.counter_unavailable", error=type(error).__name__)
            return None
        return RateStatus(limit, limit - count, WINDOW_SECONDS - passed)
