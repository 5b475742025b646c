"""The desk of a walk: what is not there is asked for by name, all of it at once."""

import pytest

from orchestrator.core.common.errors import ContentMissing
from orchestrator.core.domain.content_store import ContentStore
from tests.proves import proves


@proves("R-SESS-8", part="content that a walk names twice is fetched once")
def test_what_is_missing_is_named_once_however_often_it_is_asked_for() -> None:
    # Two calls of one reply may have the same result. Whoever fetches counts what came against what was
    # wanted, so that a name said twice would never be complete.
    desk = ContentStore(b"salt", {"a": b"there"})
    with pytest.raises(ContentMissing) as missing:
        desk.require(["b", "a", "c", "b", "b"])
    assert missing.value.data["digests"] == ("b", "c")


def test_what_lies_there_or_was_made_is_not_asked_for() -> None:
    desk = ContentStore(b"salt", {"a": b"there"})
    made = desk.put(b"made")
    desk.require(["a", made, "a"])
    assert desk.read(made) == b"made"
