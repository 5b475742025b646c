"""The content that the core reads and writes, by digest.

Content is addressed by its digest, so it adds no nondeterminism to `advance`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from orchestrator.core.common.errors import ContentMissing, ContentSought
from traces.core.canonical import payload_digest


class ContentStore:
    """The content available during one walk.

    `held` was fetched before the walk, `made` is what this walk wrote. `rendered` caches what was rendered
    from content and facts; it may outlast the walk, because equal content renders equally. `absent` holds
    digests for which no content exists; None: all existing content is held.
    Raises: ContentMissing for a digest that was not fetched. The caller fetches the content and walks
        again, which is safe because a walk is pure.
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
        """Store `body` and return its digest."""
        digest = payload_digest(self._salt, body)
        if digest not in self._held:
            self.made[digest] = body
        return digest

    def read(self, digest: str) -> bytes:
        """Return the bytes of `digest`."""
        body = self.made.get(digest)
        if body is not None:
            return body
        try:
            return self._held[digest]
        except KeyError:
            raise ContentMissing(digests=(digest,)) from None

    def find(self, digest: str) -> bytes | None:
        """Return the bytes of `digest`, or None if the run has no such content.

        Use this for digests that appear in untrusted text.
        Raises: ContentSought if the digest has not been looked up yet.
        """
        try:
            return self.read(digest)
        except ContentMissing:
            if self._absent is None or digest in self._absent:
                return None
            raise ContentSought(digests=(digest,)) from None

    def require(self, digests: Iterable[str]) -> None:
        """Check that all digests are available.

        Raises: ContentMissing naming each missing digest once; the caller counts what it fetched.
        """
        missing = tuple(dict.fromkeys(d for d in digests if d not in self.made and d not in self._held))
        if missing:
            raise ContentMissing(digests=missing)

    def json(self, digest: str) -> Any:
        """Return the JSON value of `digest`; it was checked when it was written."""
        return orjson.loads(self.read(digest))

    def text(self, digest: str, limit: int) -> str:
        """Return at most `limit` characters of the text of `digest`; bytes that are not UTF-8 are escaped."""
        return self.read(digest)[: limit * 4].decode("utf-8", "backslashreplace")[:limit]
