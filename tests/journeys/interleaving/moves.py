"""What Hypothesis may order: each move is one actor's next step."""

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.journeys.interleaving.stage import Stage


class Move(NamedTuple):
    """One step of one actor: the stage's verb and what it is given."""

    verb: str
    arguments: tuple[object, ...] = ()

    def make(self, stage: Stage) -> None:
        """Do it."""
        verb: Callable[..., None] = getattr(stage, self.verb)
        verb(*self.arguments)

    def __repr__(self) -> str:
        return f"{self.verb}({', '.join(map(str, self.arguments))})"


def _move(verb: str, *arguments: SearchStrategy[object]) -> SearchStrategy[Move]:
    return st.tuples(*arguments).map(lambda given: Move(verb, given))


WORKERS = st.sampled_from(["a", "b", "sweeper"])
REVIEWERS = st.sampled_from(["approver", "second"])
FAULTS = st.sampled_from(["fail", "commit_then_fail"])
POINTS = st.sampled_from(
    ["before_dispatch", "dispatched", "sent", "performed", "committed", "before_commit", "renewed"]
)
WORDS = st.sampled_from(["approve", "approve", "approve", "edit", "revise", "reject"])
# Named more than once what is wanted more often.
ANY_MOVE: SearchStrategy[Move] = st.one_of(
    _move("work", WORKERS, st.integers(1, 8)),
    _move("work", WORKERS, st.integers(1, 8)),
    _move("work_to", WORKERS, POINTS),
    _move("work_to", WORKERS, POINTS),
    _move("review", REVIEWERS, st.just("approve")),
    _move("review", REVIEWERS, st.just("approve")),
    _move("review", REVIEWERS, WORDS),
    _move("crash_at", WORKERS, POINTS),
    _move("time_passes", st.just("lease")),
    _move("time_passes", st.just("lease")),
    _move("time_passes", st.sampled_from(["lease", "gates", "grants"])),
    _move("operate", st.sampled_from(["resume", "pause", "cancel"])),
    _move("company_fails", st.sampled_from(["payments", "mail"]), FAULTS),
)
ORDERS = st.sampled_from(["A-1001", "A-1003", "A-1012"])
# Short ones are what a failure shrinks to; long ones are where three actors meet.
SCHEDULES: SearchStrategy[list[Move]] = st.one_of(
    st.lists(ANY_MOVE, min_size=1, max_size=20), st.lists(ANY_MOVE, min_size=15, max_size=60)
)
