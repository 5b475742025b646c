"""A run claimed by a worker: the data read at the claim, kept up to date commit by commit."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.tools.circuit_breaker import Circuit
from orchestrator.outbound.gateways.database_authorization import CachedAuthorization
from traces.core.integrity.chain import Head
from traces.sealed_values import Vault

KEPT_BYTES = 16_000_000
# Enough for the conversation window and the facts of one prompt, with some spare room.
RENDERED = 256


class ContentCache(Mapping[str, bytes]):
    """Content by digest, bounded in bytes, least recently read evicted first. Holds copies of stored content
    only.
    """

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def keep(self, bodies: Mapping[str, bytes]) -> None:
        """Add bodies to the cache and evict the least recently read ones over the bound."""
        for digest, body in bodies.items():
            if digest not in self._bodies:
                self._bodies[digest] = body
                self._bytes += len(body)
        while self._bytes > KEPT_BYTES and len(self._bodies) > 1:
            _, dropped = self._bodies.popitem(last=False)
            self._bytes -= len(dropped)

    def __getitem__(self, digest: str) -> bytes:
        self._bodies.move_to_end(digest)
        return self._bodies[digest]

    def __contains__(self, digest: object) -> bool:
        # The default fetches the item and catches the KeyError, which is slow because most digests are new.
        return digest in self._bodies

    def behind(self, fresh: Mapping[str, bytes]) -> "StagedContent":
        """Return the `fresh` content, backed by this cache for everything else."""
        return StagedContent(fresh, self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


class StagedContent(Mapping[str, bytes]):
    """Content that a commit will store, looked up before the cache and not added to it.

    A commit that fails must produce the content again.
    """

    def __init__(self, fresh: Mapping[str, bytes], shelf: ContentCache) -> None:
        self._fresh, self._shelf = fresh, shelf

    def __getitem__(self, digest: str) -> bytes:
        body = self._fresh.get(digest)
        return self._shelf[digest] if body is None else body

    def __contains__(self, digest: object) -> bool:
        return digest in self._fresh or digest in self._shelf

    def __iter__(self) -> Iterator[str]:
        yield from self._fresh
        yield from (digest for digest in self._shelf if digest not in self._fresh)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(slots=True, kw_only=True)
class ClaimedRun:
    """One claimed run. The next commit must find `version` and `fence` unchanged in the database."""

    run: UUID
    tenant: UUID
    worker: str
    fence: int
    version: int
    takeovers: int
    graph: CompiledGraph
    manifest: Manifest
    salt: bytes
    # None: the run was created before sealed values existed.
    sealing_key: bytes | None = None
    # The values that the run has sealed so far, with their references: never shown, never stored.
    known: dict[str, str] = field(default_factory=dict, repr=False)
    state: RunState
    head: Head
    snapshot_number: int
    patch_bytes: int
    snapshot_bytes: int = 0
    shelf: ContentCache = field(default_factory=ContentCache)
    # Rendered quotations in prompts, built from immutable content only.
    rendered: dict[object, Any] = field(default_factory=dict)
    permits: dict[str, CachedAuthorization] = field(default_factory=dict)
    # Circuits that failed or changed before, as the last commit read them; None before the first commit.
    circuits: Mapping[tuple[str, str], Circuit] | None = None

    @property
    def vault(self) -> Vault | None:
        """Return a vault that knows the run's sealed values and has sealed nothing yet.

        Returns None without a sealing key.
        """
        if self.sealing_key is None:
            return None
        return Vault(
            tenant=self.tenant, salt=self.salt, wrapped=self.sealing_key, known=self.known,
            open_calls=frozenset(self.state.opened),
        )  # fmt: skip

    @property
    def keys(self) -> dict[str, object]:
        """Return the parameters of a commit's opening statement: the run, its owner and expected versions."""
        return {
            "run": self.run,
            "tenant": self.tenant,
            "worker": self.worker,
            "fence": self.fence,
            "version": self.version,
            "at": None,
        }
