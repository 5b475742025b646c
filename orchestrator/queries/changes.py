"""Which runs of the tenant changed since a cursor: the rows of every list that follows. In the tenant's
context."""

from typing import NamedTuple

from orchestrator.models import Run
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
