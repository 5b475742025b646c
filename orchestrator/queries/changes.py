"""What changed since a cursor: the tenant's runs for every list that follows, and about one run what stands
beside its trace. In the tenant's context."""

from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from approvals.queries.versions import version_of
from orchestrator.models import Run, RunSignal
from orchestrator.models.run import LIVE
from tenancy.marks import changes

_LIVE = ", ".join(f"'{status}'" for status in LIVE)
CANDIDATES = f"""
SELECT id, {{written}} AS written FROM orchestrator_run WHERE status IN ({_LIVE})
 UNION ALL
SELECT id, {{written}} FROM orchestrator_run WHERE finished_at >= {{since}}"""  # noqa: S608 - our own words


class ChangedRuns(NamedTuple):
    """Runs as they stand now, the cursor after them, and whether there are more already."""

    runs: tuple[Run, ...]
    seq: str
    more: bool


def changed_runs(after: str) -> ChangedRuns:
    """The runs that changed after a cursor; from the beginning (""): those that live or have just ended.

    A run may come twice, none is missed. Raises ValueError for a cursor that is none of ours.
    """
    found = changes(CANDIDATES, after)
    rows = Run.objects.select_related("workflow_version").in_bulk(found.ids)
    return ChangedRuns(tuple(rows[key] for key in found.ids if key in rows), found.seq, found.more)


def beside(run_id: UUID) -> str:
    """A name of what was said to a run beside its trace: words to its requests, wishes of operators. Another
    name as soon as anything of it changed."""
    wishes = RunSignal.objects.filter(run_id=run_id).count()
    return blake2b(f"{version_of(run_id)}/{wishes}".encode(), digest_size=6).hexdigest()
