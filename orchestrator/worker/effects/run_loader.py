"""Read everything that a worker needs of a run that it has claimed (docs/ring.md)."""

from typing import TYPE_CHECKING
from uuid import UUID

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of, state_of
from traces.core.errors import TraceMissing
from traces.core.integrity.chain import Head
from traces.queries import RECALL, SALT, SEALED, parse_salt, parse_state_parts, sealing_key
from traces.sealed_values import learn_sealed

if TYPE_CHECKING:
    from orchestrator.worker.leases import ClaimedLease

MANIFEST = "SELECT body, pins_digest FROM orchestrator_manifestrow WHERE id = %(run)s"
# What a worker wants to know of a run that it has taken; nobody else writes it from then on.
READ = (RECALL, MANIFEST, SALT, SEALED)


def load_claimed_run(tenant_id: UUID, run_id: UUID, worker: str, claimed: "ClaimedLease") -> ClaimedRun:
    """Everything a worker needs of a claimed run. Raises TraceMissing where it has none."""
    states, manifests, salts, sealed = claimed.read
    found = parse_state_parts(states)
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
    hand = ClaimedRun(
        run=run_id,
        tenant=tenant_id,
        worker=worker,
        fence=claimed.fence,
        version=claimed.version,
        takeovers=claimed.takeovers,
        graph=graph_of(tenant_id, claimed.workflow_version),
        manifest=manifest,
        salt=parse_salt(salts),
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
