"""The mark that ties a test to what it proves."""

from __future__ import annotations

import re

import pytest

_ID = re.compile(
    r"R-(GRAPH|LOOP|BUDGET|TOOL|APPR|SESS|TRACE|SEC|API|UI|CONSOLE|MEM|EVAL|OPS)-[1-9][0-9]?"
    r"|[A-Z][1-9][0-9]?|SPEED|RING|SABOTAGE"
)


def proves(requirement: str, part: str | None = None) -> pytest.MarkDecorator:
    """Mark the test that would fail without `requirement` (an id such as `R-BUDGET-2`, or a threat such as
    `M7`).

    `part` names the share of a requirement too large for one test. Raises ValueError for anything that is
    no id.
    """
    if not _ID.fullmatch(requirement):
        message = f"{requirement!r} is no requirement and no threat"
        raise ValueError(message)
    return pytest.mark.proves(requirement, part=part)
