"""Which groups are followed by anybody, by the broker's own count: what is made for viewers alone is not made
where there are none."""

from functools import cache
from typing import Any

import structlog

log = structlog.get_logger(__name__)


async def list_followed_groups(layer: Any, beginning: str) -> frozenset[str]:
    """The groups of this beginning that some process is subscribed to; empty where the layer cannot say.

    Raises what the broker does.
    """
    try:
        # Channels has no question for it: asked is the layer's own connection, under the layer's own names.
        # They are nobody's promise, so the dependency is bound below its next version (pyproject.toml).
        begins = layer._get_group_channel_name(beginning)  # noqa: SLF001
        found: set[str] = set()
        for shard in layer._shards:  # noqa: SLF001
            async with shard._lock:  # noqa: SLF001
                shard._ensure_redis()  # noqa: SLF001
                names = await shard._redis.pubsub_channels(f"{begins}*")  # noqa: SLF001
            found.update(beginning + name.decode()[len(begins) :] for name in names)
    except (AttributeError, TypeError):
        _cannot_ask(type(layer).__name__)
        return frozenset()
    return frozenset(found)


@cache
def _cannot_ask(layer: str) -> None:
    """Said once: no text is shown while it is written, and all else is as it was."""
    log.warning("live.subscriber_count_unavailable", layer=layer)
