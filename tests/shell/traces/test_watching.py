"""Who follows, where the broker's layer cannot be asked."""

from channels.layers import InMemoryChannelLayer
from structlog.testing import capture_logs

from traces.live.subscriber_count import list_followed_groups


async def test_a_layer_that_cannot_be_asked_is_named_once_and_nobody_follows() -> None:
    class Another(InMemoryChannelLayer):
        """A layer without the names that we know."""

    with capture_logs() as said:
        found = [await list_followed_groups(Another(), "run.") for _ in range(2)]
    assert found == [frozenset(), frozenset()]
    assert [one["layer"] for one in said] == ["Another"]
