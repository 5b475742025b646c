"""The legal transitions between run statuses (R-SESS-5).

The database trigger (orchestrator/migrations/sql/runs.sql) accepts what one commit may make of them.
"""

from orchestrator.core.common.errors import IllegalMove
from orchestrator.core.common.run_status import Status

S = Status
LEGAL: dict[Status, frozenset[Status]] = {
    S.QUEUED: frozenset({S.IN_PROGRESS, S.CANCELLED, S.EXPIRED}),
    S.IN_PROGRESS: frozenset(
        {
            S.AWAITING_GATE,
            S.AWAITING_INPUT,
            S.PAUSED,
            S.COMPLETED,
            S.FAILED,
            S.CANCELLED,
            S.EXPIRED,
            S.REJECTED,
        }
    ),
    S.AWAITING_GATE: frozenset({S.IN_PROGRESS, S.PAUSED, S.REJECTED, S.EXPIRED, S.CANCELLED, S.FAILED}),
    S.AWAITING_INPUT: frozenset({S.IN_PROGRESS, S.PAUSED, S.EXPIRED, S.CANCELLED}),
    S.PAUSED: frozenset({S.IN_PROGRESS, S.CANCELLED, S.EXPIRED}),
}


def compute_transition_path(source: Status, target: Status) -> tuple[Status, ...]:
    """Return the statuses passed from `source` to `target` in one commit, without `source`.

    A commit may carry a run through in_progress (a decided gate whose run ends at once), so two moves are
    allowed.
    Raises: IllegalMove if neither one nor two legal moves lead to `target`.
    """
    if source is target:
        return ()
    if target in LEGAL.get(source, frozenset()):
        return (target,)
    if S.IN_PROGRESS in LEGAL.get(source, frozenset()) and target in LEGAL[S.IN_PROGRESS]:
        return (S.IN_PROGRESS, target)
    raise IllegalMove(source=source.value, target=target.value)
