"""Content the core reads and makes, by digest. Content-addressed, so it adds no freedom to `advance`."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from orchestrator.core.common.errors import ContentMissing, ContentSought
from traces.core.canonical import payload_digest


class ContentStore:
    """What lies on the table during one walk: `held` is what was fetched before, `made` what this walk wrote.

    `rendered` is what was written out of content and facts before: it may outlast the walk, for the same
    content gives the same. Raises ContentMissing for a digest that was not fetched: the shell fetches it and
    walks again, which is safe because a walk is pure. `absent` are digests of which there is no content;
    None: whatever there is is held.
    """

    def __init__(
        self,
        salt: bytes,
        held: Mapping[str, bytes],
        rendered: dict[object, Any] | None = None,
        absent: Collection[str] | None = None,
    ) -> None:
        self._salt = salt
        self._held = held
        self._absent = absent
        self.made: dict[str, bytes] = {}
        self.rendered = {} if rendered is None else rendered

    def put(self, body: bytes) -> str:
        """Keep `body`; its digest."""
        digest = payload_digest(self._salt, body)
        if digest not in self._held:
            self.made[digest] = body
        return digest

    def read(self, digest: str) -> bytes:
        """The bytes of `digest`."""
        body = self.made.get(digest)
        if body is not None:
            return body
        try:
            return self._held[digest]
        except KeyError:
            raise ContentMissing(digests=(digest,)) from None

    def find(self, digest: str) -> bytes | None:
        """The bytes of `digest`, or None where the run has no such content: for digests that a stranger's
        text names. Raises ContentSought where nobody has looked yet."""
        try:
            return self.read(digest)
        except ContentMissing:
            if self._absent is None or digest in self._absent:
                return None
            raise ContentSought(digests=(digest,)) from None

    def require(self, digests: Iterable[str]) -> None:
        """Ask for many at once. Raises ContentMissing naming all that are not there, each once: whoever
        fetches them counts what came."""
        missing = tuple(dict.fromkeys(d for d in digests if d not in self.made and d not in self._held))
        if missing:
            raise ContentMissing(digests=missing)

    def json(self, digest: str) -> Any:
        """The JSON value of `digest`; it was checked when it was written."""
        return orjson.loads(self.read(digest))

    def text(self, digest: str, limit: int) -> str:
        """At most `limit` characters of the text of `digest`; what is not UTF-8 is made visible."""
        return self.read(digest)[: limit * 4].decode("utf-8", "backslashreplace")[:limit]
