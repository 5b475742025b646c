"""A run's trace as JSON lines, verifiable without a database (R-TRACE-4; docs/trace-format.md)."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from tenancy.core.errors import OutsideTenant
from tenancy.db.tenant_context import current_tenant
from traces.core.errors import TraceMissing
from traces.core.integrity.export_format import lines_of, verify_lines
from traces.core.integrity.verification import VerificationFault
from traces.ports import get_runs_port
from traces.queries import trace_of


def export_trace(run_id: UUID) -> Iterator[bytes]:
    """The lines of a run's trace. Read them inside the tenant's context. Raises TraceMissing."""
    tenant_id = current_tenant()
    if tenant_id is None:
        raise OutsideTenant(table="traces_record")
    trace = trace_of(run_id)
    if not trace.records:
        raise TraceMissing
    pinned = get_runs_port().load_pins(run_id)
    manifest, pins = pinned if pinned is not None else (None, None)
    yield from lines_of(trace, tenant_id, get_runs_port().heads(run_id).get(run_id), manifest, pins)


def verify_file(path: Path) -> list[VerificationFault]:
    """Every fault of an exported trace; empty when it is whole. No database. Raises NotAnExport, OSError."""
    with path.open("rb") as file:
        return verify_lines(file)
