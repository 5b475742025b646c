"""How long a row's bar is: one scale for every row of every run, so that a row that comes changes no other's.

A scale of the page's own longest row would compare nothing across pages, and redraw all of them when a longer
one comes. Times of a run go from a look-up's milliseconds to a night's wait: the scale is logarithmic.
"""

from math import log10
from typing import Final

LEAST_SECONDS: Final = 0.01
TENFOLD: Final = 4
FULL: Final = 22


def bar_of(seconds: float) -> int:
    """The steps of a bar, 0 to 22: four for each tenfold, none up to 10 ms, all from an hour on (R-UI-3)."""
    if seconds <= LEAST_SECONDS:
        return 0
    return min(FULL, round(TENFOLD * log10(seconds / LEAST_SECONDS)))
