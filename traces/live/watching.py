"""Which groups are followed by anybody, by the broker's own count: what is made for viewers alone is not made
where there are none."""

from typing import Any


async def followed(layer: Any, beginning: str) -> frozenset[str]:
    """The groups of this beginning that some process is subscribed to; empty where the layer cannot say.

    Raises what the broker does.
    """
    name_of = getattr(layer, "_get_group_channel_name", None)
    if name_of is None:
        return frozenset()
    # Channels has no question for it: asked is the layer's own connection, under the layer's own names.
    begins = name_of(beginning)
    found: set[str] = set()
    for shard in layer._shards:  # noqa: SLF001
        async with shard._lock:  # noqa: SLF001
            shard._ensure_redis()  # noqa: SLF001
            names = await shard._redis.pubsub_channels(f"{begins}*")  # noqa: SLF001
        found.update(beginning + name.decode()[len(begins) :] for name in names)
    return frozenset(found)
