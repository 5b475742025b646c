"""Verdicts of the measurements: a figure that misses its bound ends the command with status 1."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Verdicts:
    """What was judged so far. Kept by the process that measures."""

    missed: list[str] = field(default_factory=list)

    def judge(self, what: str, *, held: bool) -> bool:
        """Print PASS or FAIL with what was judged; remember what failed."""
        print(f"{'PASS' if held else 'FAIL'}  {what}")
        if not held:
            self.missed.append(what)
        return held

    @property
    def status(self) -> int:
        """The status to end with."""
        return 1 if self.missed else 0


VERDICTS = Verdicts()


def judge(what: str, *, held: bool) -> bool:
    """A verdict of this process."""
    return VERDICTS.judge(what, held=held)
