"""A run in a worker's hand: what it read when it claimed the run, kept up to date commit by commit."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.tools.circuit_breaker import Circuit
from orchestrator.gateways.database_authorization import CachedAuthorization
from traces.core.integrity.chain import Head
from traces.sealed_values import Vault

KEPT_BYTES = 16_000_000
# A window of the conversation and the facts of a prompt, and room to move on.
RENDERED = 256


class ContentCache(Mapping[str, bytes]):
    """Content by digest, bounded in bytes; the least recently read goes first. Only ever a copy of what is
    stored."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def keep(self, bodies: Mapping[str, bytes]) -> None:
        """Put bodies on the shelf."""
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
        # The default asks for the item and catches what is raised: most digests are new.
        return digest in self._bodies

    def behind(self, fresh: Mapping[str, bytes]) -> "StagedContent":
        """What is `fresh`, and the shelf for all else."""
        return StagedContent(fresh, self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)


class StagedContent(Mapping[str, bytes]):
    """Content that a commit will store, before the shelf and not on it: a commit that fails must make it
    again."""

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
    """One claimed run. `version` and `fence` are what the next commit must find in the database."""

    run: UUID
    tenant: UUID
    worker: str
    fence: int
    version: int
    takeovers: int
    graph: CompiledGraph
    manifest: Manifest
    salt: bytes
    # None: the run is older than sealed values.
    sealing_key: bytes | None = None
    # What the run sealed so far, with its references: never shown, never kept.
    known: dict[str, str] = field(default_factory=dict, repr=False)
    state: RunState
    head: Head
    snapshot_number: int
    patch_bytes: int
    snapshot_bytes: int = 0
    shelf: ContentCache = field(default_factory=ContentCache)
    # What prompts quote, as they quote it: only ever made of content that stays as it is.
    rendered: dict[object, Any] = field(default_factory=dict)
    permits: dict[str, CachedAuthorization] = field(default_factory=dict)
    # Those in trouble or changed before, as the last commit read them; None before the first.
    circuits: Mapping[tuple[str, str], Circuit] | None = None

    @property
    def vault(self) -> Vault | None:
        """The run's sealed values, with nothing sealed here yet; what is sealed in it the run knows."""
        if self.sealing_key is None:
            return None
        return Vault(
            tenant=self.tenant, salt=self.salt, wrapped=self.sealing_key, known=self.known,
            open_calls=frozenset(self.state.opened),
        )  # fmt: skip

    @property
    def keys(self) -> dict[str, object]:
        """What a commit must find, and whose it is, as the parameters of its opening statement."""
        return {
            "run": self.run,
            "tenant": self.tenant,
            "worker": self.worker,
            "fence": self.fence,
            "version": self.version,
            "at": None,
        }
