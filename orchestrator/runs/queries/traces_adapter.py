"""Adapter that gives traces the chain heads and pins stored in the run rows (traces/ports.py)."""

from collections.abc import Mapping
from uuid import UUID

from orchestrator.publishing.models import PinSet
from orchestrator.runs.models.run import ManifestRow, Run
from traces.core.integrity.chain import Head
from traces.ports import PinnedManifest


class TracedRuns:
    """The runs of the current tenant."""

    def heads(self, run_id: UUID | None = None) -> Mapping[UUID, Head]:
        """Return the head stored in each run's row: of all runs, or of the given run if it exists."""
        found = Run.objects.all() if run_id is None else Run.objects.filter(id=run_id)
        rows = found.values_list("id", "record_number", "record_hash", "event_seq", "event_hash")
        return {
            run: Head(
                run=run,
                record_number=number,
                record_hash=bytes(record),
                event_seq=seq,
                event_hash=bytes(event),
            )
            for run, number, record, seq, event in rows
        }

    def load_pins(self, run_id: UUID) -> PinnedManifest | None:
        """Return a run's manifest and its pins as hashed; None if there is no such run."""
        row = ManifestRow.objects.filter(id=run_id).values_list("body", "pins_digest").first()
        if row is None:
            return None
        pins = PinSet.objects.values_list("body", flat=True).get(digest=row[1])
        return PinnedManifest(bytes(row[0]), bytes(pins))
