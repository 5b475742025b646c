"""Whether the broker answers: a page says so, nothing depends on it."""

import redis
from django.conf import settings

PATIENCE_SECONDS = 0.3


def broker_answers() -> bool:
    """Whether the broker answers a PING at once."""
    try:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        )
        with client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
