"""How long the runs that were under way at a fault took until they went on, by their own records."""

from dataclasses import dataclass, field
from statistics import median
from time import monotonic, sleep
from typing import Final

from bench.faults.processes import Database

UNDER_WAY: Final = """
SELECT id::text, event_seq, fence, lease_owner FROM orchestrator_run
 WHERE lease_owner IS NOT NULL AND finished_at IS NULL"""
NOW: Final = "SELECT id::text, event_seq, fence, lease_owner FROM orchestrator_run WHERE id = ANY(%s::uuid[])"
LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMark:
    """Where a run stood at a moment: its last event, its fence, and who held it."""

    run: str
    event: int
    fence: int
    owner: str

    def is_held_by(self, pid: int) -> bool:
        """True if the lease names the process."""
        return self.owner.split(":")[1:2] == [str(pid)]


@dataclass(slots=True, kw_only=True)
class RecoveryTime:
    """Seconds from a fault to the next event of each run that was under way."""

    seconds: list[float] = field(default_factory=list)
    runs: int = 0

    @property
    def p50(self) -> float:
        """The median; 0 where no run was under way."""
        return median(self.seconds) if self.seconds else 0.0

    @property
    def longest(self) -> float:
        """The longest; 0 where no run was under way."""
        return max(self.seconds, default=0.0)

    @property
    def is_complete(self) -> bool:
        """True if every run went on within the bound."""
        return len(self.seconds) == self.runs


def marks_now(database: Database, pid: int | None = None) -> list[RunMark]:
    """Return the runs under way, those of one process where it is named; none while the database is away."""
    rows = database.rows(UNDER_WAY) or []
    found = [
        RunMark(run=str(run), event=int(str(event)), fence=int(str(fence)), owner=str(owner))
        for run, event, fence, owner in rows
    ]
    return [one for one in found if pid is None or one.is_held_by(pid)]


def measure_recovery(
    database: Database, marks: list[RunMark], since: float, *, bound: float, by: str = "event"
) -> RecoveryTime:
    """Watch the runs until each has another event (`by` "fence": another holder) than at its mark, for
    `bound` seconds at most."""
    left = {one.run: one for one in marks}
    found = RecoveryTime(runs=len(left))
    while left and monotonic() < since + bound:
        for run, event, fence, _owner in database.rows(NOW, list(left)) or []:
            mark = left[str(run)]
            moved = int(str(event)) > mark.event if by == "event" else int(str(fence)) > mark.fence
            if moved:
                found.seconds.append(monotonic() - since)
                del left[str(run)]
        sleep(LOOK_SECONDS)
    return found
