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
ANY_MOVE: SearchStrategy[Move] = st.one_of(
    _move("work", WORKERS, st.integers(1, 8)),
    _move("work", WORKERS, st.integers(1, 8)),
    _move("work", WORKERS, st.integers(1, 8)),
    _move("review", REVIEWERS, st.sampled_from(["approve", "approve", "approve", "edit", "reject"])),
    _move("review", REVIEWERS, st.just("approve")),
    _move("kill", WORKERS),
    _move("time_passes", st.just("lease")),
    _move("time_passes", st.sampled_from(["lease", "gates", "grants"])),
    _move("operate", st.sampled_from(["cancel", "pause", "resume", "resume"])),
    _move("company_fails", st.sampled_from(["payments", "mail"]), FAULTS),
)
ORDERS = st.sampled_from(["A-1001", "A-1003", "A-1012"])
# Two places at which a schedule is dense enough to meet: everything at once, and long with few interruptions.
SCHEDULES: SearchStrategy[list[Move]] = st.lists(ANY_MOVE, min_size=5, max_size=50)
