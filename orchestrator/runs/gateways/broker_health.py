"""Health check of the broker, for display on a page; nothing depends on it."""

import redis
from django.conf import settings

PATIENCE_SECONDS = 0.3


def broker_answers() -> bool:
    """Return whether the broker answers a PING within PATIENCE_SECONDS."""
    try:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        )
        with client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
