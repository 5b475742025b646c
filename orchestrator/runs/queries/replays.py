"""Replays a stored run."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson

from orchestrator.core.common.errors import ReplayDiffers
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.replay import Report, replay_records
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from tenancy.db.tenant_context import current_tenant, tenant_transaction
from traces.core.errors import Erased
from traces.core.integrity.chain import START, Head
from traces.models import Payload
from traces.queries import list_records, list_snapshots, load_salt


def replay_lines(run_id: UUID, _: Mapping[str, Any]) -> list[str]:
    """Return the lines that `manage.py trace replay` prints. Call it inside the run's tenant.

    Raises: ReplayDiffers.
    """
    house = current_tenant()
    assert house is not None
    report = replay_stored_run(house, run_id)
    if not report.matches:
        raise ReplayDiffers(run=str(run_id), record=report.first_difference, detail=report.detail)
    return [f"{run_id}: {report.records} records come out the same"]


def replay_stored_run(tenant_id: UUID, run_id: UUID) -> Report:
    """Feed the recorded events to the core and compare every record.

    Opens the tenant's transaction itself.
    """
    with tenant_transaction(tenant_id):
        run = Run.objects.get(id=run_id)
        row = ManifestRow.objects.get(id=run_id)
        manifest = manifest_of(bytes(row.body), pins_of(tenant_id, row.pins_digest))
        graph = graph_of(tenant_id, run.workflow_version_id)
        opening = RunState.model_validate(orjson.loads(bytes(list_snapshots(run_id)[0].state)))
        first, *others = list_records(run_id)
        bodies = [bytes(record.body) for record in others]
        said = orjson.loads(bytes(first.body))["said"]
        head = Head(
            run=run_id,
            record_number=first.number,
            record_hash=bytes(first.hash),
            event_seq=len(said),
            event_hash=bytes.fromhex(said[-1]) if said else START,
        )
        try:
            run_salt = load_salt(run_id)
        except Erased:
            return Report(matches=False, records=0, first_difference=1, detail="content was erased")
        held = Payload.objects.filter(run_id=run_id).exclude(body=None).values_list("digest", "body")
        contents = {bytes(digest).hex(): bytes(body) for digest, body in held if body is not None}
    return replay_records(graph, manifest, opening, bodies, run_salt, contents, head)
