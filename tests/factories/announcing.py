"""What this process commits is announced by way of a test's own broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from channels.layers import channel_layers
from channels_redis.pubsub import RedisPubSubChannelLayer  # type: ignore[import-untyped]

from config.devstack.embedded import EmbeddedValkey


@contextmanager
def announced(valkey: EmbeddedValkey) -> Iterator[None]:
    """The channel layer of this process leads there."""
    layers: Any = channel_layers
    hosts = [{"address": valkey.url, "socket_timeout": 60}]
    before = layers.set("default", RedisPubSubChannelLayer(hosts=hosts, prefix="interlock"))
    try:
        yield
    finally:
        layers.set("default", before)
