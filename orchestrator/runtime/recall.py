"""Recall: snapshot plus patches, without running core logic, so that new code can carry an old run
(docs/ring.md)."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from orchestrator.actions.hand import Hand
from orchestrator.core.compiler import frozen
from orchestrator.core.graph import CompiledGraph
from orchestrator.core.manifest import Manifest, Pins
from orchestrator.core.state import State
from orchestrator.models import PinSet, WorkflowVersion
from tenancy.context import tenant
from traces.core.chain import Head
from traces.core.errors import TraceMissing
from traces.core.patch import apply
from traces.queries import RECALL, SALT, SEALED, recalled, salted, sealing_key
from traces.sealing import learn_sealed

if TYPE_CHECKING:
    from orchestrator.runtime.leases import Claimed

MANIFEST = "SELECT body, pins_digest FROM orchestrator_manifestrow WHERE id = %(run)s"
# What a worker wants to know of a run that it has taken; nobody else writes it from then on.
READ = (RECALL, MANIFEST, SALT, SEALED)


def take_in_hand(tenant_id: UUID, run_id: UUID, worker: str, claimed: "Claimed") -> Hand:
    """Everything a worker needs of a claimed run. Raises TraceMissing where it has none."""
    states, manifests, salts, sealed = claimed.read
    found = recalled(states)
    if not manifests:
        raise TraceMissing
    ((body, pins_digest),) = manifests
    manifest = manifest_of(bytes(body), pins_of(tenant_id, pins_digest))
    state, snapshot_bytes = state_of(found.state, found.patches)
    head = Head(
        run=run_id,
        record_number=claimed.record_number,
        record_hash=claimed.record_hash,
        event_seq=claimed.event_seq,
        event_hash=claimed.event_hash,
    )
    hand = Hand(
        run=run_id,
        tenant=tenant_id,
        worker=worker,
        fence=claimed.fence,
        version=claimed.version,
        takeovers=claimed.takeovers,
        graph=graph_of(tenant_id, claimed.workflow_version),
        manifest=manifest,
        salt=salted(salts),
        sealing_key=sealing_key(salts),
        state=state,
        head=head,
        snapshot_number=found.snapshot_number,
        patch_bytes=claimed.patch_bytes,
        snapshot_bytes=snapshot_bytes,
    )
    if sealed and (vault := hand.vault) is not None:
        learn_sealed(vault, sealed)
    return hand


def state_of(snapshot: bytes, patches: tuple[dict[str, Any], ...]) -> tuple[State, int]:
    """The state, and the snapshot's size in bytes."""
    plain = orjson.loads(snapshot)
    for patch in patches:
        plain = apply(plain, patch)
    return State.model_validate(plain), len(snapshot)


def manifest_of(body: bytes, pins: Pins) -> Manifest:
    """A manifest from its own part and the shared pins."""
    return Manifest.model_validate({**orjson.loads(body), "pins": pins})


@lru_cache(maxsize=64)
def pins_of(tenant_id: UUID, digest: str) -> Pins:
    """Pins never change, so a process parses each set once."""
    with tenant(tenant_id):
        body = PinSet.objects.values_list("body", flat=True).get(digest=digest)
    return Pins.model_validate_json(bytes(body))


@lru_cache(maxsize=64)
def graph_of(tenant_id: UUID, version_id: UUID) -> CompiledGraph:
    """A published version never changes, so a process freezes it once.

    It was compiled when it was published; later and stricter checks are no reason to drop a run that stands
    on it.
    """
    with tenant(tenant_id):
        body = WorkflowVersion.objects.values_list("body", flat=True).get(id=version_id)
    return frozen(orjson.loads(bytes(body)))
