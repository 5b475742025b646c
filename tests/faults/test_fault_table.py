"""Every point at which a worker can die, for every kind of tool: the ends that the table of recovery names.

The judge is the demo company's own log: an effect is there once, or nobody knows and a person is asked.
"""

from contextlib import nullcontext
from typing import Any

import pytest

from tests.doors.demo.test_faults import eventually
from tests.factories.foreign import onwards
from tests.factories.hurry import in_a_hurry
from tests.faults.cases import ASKED, BLIND, FINDABLE, KEYED, READ, UNTIL_TOLD, Case, judge
from tests.proves import proves

pytestmark = pytest.mark.slow

SURELY_NOT_SENT = {KEYED: "repeated", FINDABLE: "abandoned", BLIND: "abandoned"}
SENT = {KEYED: "repeated", FINDABLE: "found", BLIND: "in_doubt"}
MUTATING = [KEYED, FINDABLE, BLIND]


@proves("R-TOOL-9", part="killed before anything was sent")
@proves("R-SESS-8", part="killed before anything was sent")
@pytest.mark.parametrize("tool", MUTATING)
@pytest.mark.parametrize("point", ["claimed", "before_commit", "committed", "before_dispatch"])
def test_killed_before_the_send(case: Case, tool: str, point: str) -> None:
    case.dies(point)
    assert case.effects() == 0
    begun = point in ("committed", "before_dispatch")
    judge(case, "none", 1, [SURELY_NOT_SENT[tool]] if begun else [])


@proves("R-TOOL-9", part="killed where nobody knows")
@pytest.mark.parametrize("tool", MUTATING)
@pytest.mark.parametrize("verdict", ["not_happened", "cancel"])
def test_killed_between_the_row_and_the_send(case: Case, tool: str, verdict: str) -> None:
    case.dies("dispatched")
    assert case.effects() == 0
    if tool == KEYED:
        judge(case, "none", 1, ["repeated"])
    else:
        judge(case, verdict, 0, ["in_doubt"])


@proves("R-TOOL-9", part="killed after the send")
@pytest.mark.parametrize("tool", MUTATING)
@pytest.mark.parametrize(("point", "times"), [("sent", 1), ("performed", 1), ("before_commit", 2)])
def test_killed_after_the_send(case: Case, tool: str, point: str, times: int) -> None:
    case.dies(point, times)
    assert case.effects() == 1
    judge(case, "happened", 1, [SENT[tool]])


@proves("R-TOOL-9", part="cancelled in doubt")
@pytest.mark.parametrize("tool", [BLIND])
def test_what_happened_and_is_not_known_can_be_cancelled(case: Case, tool: str) -> None:
    case.dies("sent")
    judge(case, "cancel", 1, ["in_doubt"])


@proves("R-TOOL-9", part="read-only")
@pytest.mark.parametrize("tool", [READ])
@pytest.mark.parametrize(
    ("point", "times", "repeats"),
    [
        ("claimed", 1, 0),
        ("before_commit", 2, 0),
        ("committed", 2, 1),
        ("performed", 2, 1),
        ("before_commit", 3, 1),
    ],
)
def test_a_look_up_is_repeated(case: Case, tool: str, point: str, times: int, repeats: int) -> None:
    case.dies(point, times)
    judge(case, "none", 0, ["repeated"] * repeats)


@proves("R-TOOL-9", part="killed while recovering")
@pytest.mark.parametrize("tool", [KEYED])
@pytest.mark.parametrize("point", ["renewed", "sent"])
def test_killed_again_while_it_repeats(case: Case, tool: str, point: str) -> None:
    case.dies("sent")
    case.dies(point)
    judge(case, "none", 1, ["repeated"])
    keys = {asked["key"] for asked in case.company.requests("payments") if asked["method"] == "POST"}
    assert len(keys) == 1


@proves("R-TOOL-10", part="a status in front of a first request")
@pytest.mark.parametrize("tool", [KEYED])
def test_a_repetition_that_is_turned_away_says_nothing_of_the_first_request(
    case: Case, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.effects.effect_executor.LOOK_AGAIN_SECONDS", 0.05)
    case.company.faults("payments", "slow", seconds=UNTIL_TOLD, times=1, on="writes")
    with in_a_hurry(tool):
        case.dies("sent")
    case.company.faults("payments", "refuse", times=1, on="writes")
    onwards(case.world, case.run)
    assert (case.effects(), case.resolutions()) == (0, ["repeated"])
    (opened,) = case.world.said(case.run, "effect_left_open")
    assert (opened["tool"], opened["error"]) == (tool, "refused")
    case.company.faults("payments", "none")
    assert eventually(lambda: case.effects() == 1)
    judge(case, "none", 1, ["repeated"])
    assert case.world.result(case.run)["open_effects"][0]["tool"] == tool


MODES: list[Any] = [
    (READ, "fail", 0, []),
    (READ, "hang", 0, []),
    (KEYED, "fail", 1, []),
    (KEYED, "commit_then_fail", 1, []),
    (KEYED, "commit_then_refuse", 1, ["found"]),
    (KEYED, "hang", 1, []),
    (KEYED, "commit_then_hang", 1, []),
    (FINDABLE, "fail", 0, []),
    (FINDABLE, "commit_then_fail", 1, ["found"]),
    (FINDABLE, "commit_then_refuse", 1, ["found"]),
    (FINDABLE, "hang", 0, ["in_doubt"]),
    (FINDABLE, "commit_then_hang", 1, ["found"]),
    (BLIND, "fail", 0, []),
    (BLIND, "commit_then_fail", 1, []),
    (BLIND, "commit_then_refuse", 1, []),
    (BLIND, "hang", 0, ["in_doubt"]),
    (BLIND, "commit_then_hang", 1, ["in_doubt"]),
]


@proves("G5", part="by the company's own log")
@proves("G6", part="by the company's own log")
@proves("R-TOOL-11", part="every kind of failure")
@proves("R-TOOL-10", part="every kind of failure")
@pytest.mark.parametrize(("tool", "mode", "effects", "resolutions"), MODES)
def test_the_company_fails(case: Case, tool: str, mode: str, effects: int, resolutions: list[str]) -> None:
    case.company.faults(ASKED[tool][0], mode, times=1, on="all" if tool == READ else "writes")
    with in_a_hurry(tool) if "hang" in mode else nullcontext():
        judge(case, "happened" if effects else "not_happened", effects, resolutions)
    sends = [asked for asked in case.company.requests(ASKED[tool][0]) if asked["method"] == "POST"]
    again = tool == KEYED and mode != "commit_then_refuse"
    assert len(sends) == (0 if tool == READ else 1 + again), "a change without keys was sent twice"
    assert len({asked["key"] for asked in sends}) <= 1
    assert len(case.world.said(case.run, "effect_left_open")) == leaves_open(tool, mode, resolutions)


def leaves_open(tool: str, mode: str, resolutions: list[str]) -> int:
    """How often it is said that an effect is open: of a key while it is repeated, of an error, of a doubt."""
    if tool == READ or "found" in resolutions:
        return 0
    return int("none" not in mode)
