"""Count what the services performed against what the accepted runs were to do. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

TAG: Final = re.compile(r"\bx\d{4}-s\d{1,2}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """One change that a service made: where, for which step of which run, and under which key."""

    service: str
    tag: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One accepted run: the steps it was to do, how it ended (empty: it has not) and why, and whether it
    is paused or waits for a person."""

    run: str
    tags: tuple[str, ...]
    code: str
    reason: str = ""
    at_a_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectCount:
    """The verdict on all runs. Every list is empty where nothing went wrong."""

    effects: int
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    stuck: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """True if nothing was lost, doubled or stuck, and every run came to its result."""
        return not (self.lost or self.doubled or self.stuck or self.failed)


def count_effects(runs: Sequence[Ended], performed: Iterable[Performed]) -> EffectCount:
    """Compare the services' own logs with the runs.

    Lost: a step of a run that has ended, which no service performed. Doubled: a step that was performed more
    than once, a key under which a service made more than one change, or a step of no accepted run. Stuck: a
    run that has not ended, also one that waits for a person, for the harness answers whatever is asked.
    Failed: a run that ended without its result.
    """
    made = list(performed)
    steps = Counter(one.tag for one in made)
    keys = Counter((one.service, one.key) for one in made if one.key)
    known = {tag for run in runs for tag in run.tags}
    twice = [tag for tag, times in steps.items() if times > 1 or tag not in known]
    twice += [f"{service} {key}" for (service, key), times in keys.items() if times > 1]
    return EffectCount(
        effects=len(made),
        lost=tuple(tag for run in runs if run.code for tag in run.tags if not steps[tag]),
        doubled=tuple(sorted(twice)),
        stuck=tuple(run.run + " waits" * run.at_a_person for run in runs if not run.code),
        failed=tuple(f"{run.run} {run.code} {run.reason}" for run in runs if run.code not in ("", "SUCCESS")),
    )


def tag_of(text: str) -> str:
    """Return the step that a text names, or nothing."""
    found = TAG.search(text)
    return found[0] if found else ""
