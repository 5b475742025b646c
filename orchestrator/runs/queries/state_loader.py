"""Load what a run is made of: its graph, its pins, its manifest, and its state from a snapshot and patches.

No core logic runs here, so that new code can carry an old run (docs/ring.md).
"""

from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from orchestrator.core.compiler.compiler import compile_published_graph
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_state import RunState
from orchestrator.publishing.models import PinSet, WorkflowVersion
from tenancy.db.tenant_context import tenant_transaction
from traces.core.state_patch import apply_patch


def state_of(snapshot: bytes, patches: tuple[dict[str, Any], ...]) -> tuple[RunState, int]:
    """The state, and the snapshot's size in bytes."""
    plain = orjson.loads(snapshot)
    for patch in patches:
        plain = apply_patch(plain, patch)
    return RunState.model_validate(plain), len(snapshot)


def manifest_of(body: bytes, pins: Pins) -> Manifest:
    """A manifest from its own part and the shared pins."""
    return Manifest.model_validate({**orjson.loads(body), "pins": pins})


@lru_cache(maxsize=64)
def pins_of(tenant_id: UUID, digest: str) -> Pins:
    """Pins never change, so a process parses each set once."""
    with tenant_transaction(tenant_id):
        body = PinSet.objects.values_list("body", flat=True).get(digest=digest)
    return Pins.model_validate_json(bytes(body))


@lru_cache(maxsize=64)
def graph_of(tenant_id: UUID, version_id: UUID) -> CompiledGraph:
    """A published version never changes, so a process freezes it once.

    It was compiled when it was published; later and stricter checks are no reason to drop a run that stands
    on it.
    """
    with tenant_transaction(tenant_id):
        body = WorkflowVersion.objects.values_list("body", flat=True).get(id=version_id)
    return compile_published_graph(orjson.loads(bytes(body)))
