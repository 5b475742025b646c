"""What a run still needs at the least, and the early end of one that has too little left (R-BUDGET-4)."""

import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import SimpleNamespace
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.core.dimension import Dimension
from budgets.core.statistics.forecast import KEPT, LEAST, UNKNOWN, Interval, estimate_interval
from orchestrator import bundled_content
from orchestrator.core.accounting import minimum_remaining as least
from orchestrator.core.accounting.minimum_remaining import least_rest
from orchestrator.core.accounting.remaining_estimate import compute_remaining_bounds, key_of, too_little
from orchestrator.core.admission.usage_statistics import (
    FinishedRun,
    PassedPlace,
    expected_of,
    subject_of,
    with_run,
)
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compiler.compiler import compile_published_graph
from orchestrator.core.domain.manifest import UsageStatistics
from orchestrator.tools.gateways.registry import shipped_tools
from tests.core.orchestrator.loops import BOUNDARY, GRAPH, LIMITS, TOOLS, loop
from tests.core.orchestrator.simulation import Simulation, manifest, pins
from tests.proves import proves

D = Decimal
SHIPPED = {name: tool.spec for name, tool in shipped_tools().items()}
LOOKUP = ("orders.lookup", {"id": "A-1"})


def lived(number: int, *turns: int, total: int, kind: str | None = None) -> FinishedRun:
    """A run that passed `act` after so many model turns; each for another goal, or for one `kind` of them."""
    passed = tuple(
        PassedPlace(key=f"m:act:{step}", used={"model_turns": D(n)}) for step, n in enumerate(turns)
    )
    kind = kind or f"goal {number}"
    return FinishedRun(run=f"r{number}", passed=passed, used={"model_turns": D(total)}, kind=kind)


def expecting(expected: UsageStatistics | None, **limits: int) -> Simulation:
    """A started run of the tool loop of which something is expected."""
    held = manifest(GRAPH, pins(TOOLS, BOUNDARY, ("tool-loop",)), LIMITS | limits)
    run = Simulation.of(GRAPH, held.evolve(expected=expected))
    run.start()
    return run


# Of GRAPH and these pins, as it was before profiles said whether they stream and who takes over.
SUBJECT = "2ef81462179d35c31fee7417fcb422c825e3d7094493e9f057d8e5f8ba907c8e"


def test_whether_a_model_streams_or_has_a_stand_in_changes_nothing_of_what_it_needs() -> None:
    held = pins(TOOLS, BOUNDARY, ("tool-loop",))
    streaming = held.evolve(
        profiles=tuple(one.evolve(streams=True, failover=("x",)) for one in held.profiles)
    )
    assert subject_of(GRAPH, held) == subject_of(GRAPH, streaming) == SUBJECT


@proves("R-BUDGET-4", part="observed quantiles")
@given(st.lists(st.integers(0, 1_000), min_size=LEAST, max_size=60))
def test_the_interval_holds_everything_it_was_made_of(seen: list[int]) -> None:
    for dimension in (Dimension.MODEL_TURNS, Dimension.COST_USD, Dimension.WALL_CLOCK_SECONDS):
        interval = estimate_interval(dimension, [D(one) for one in seen])
        assert all(interval.within(D(one)) for one in seen[-KEPT:])
        assert interval.upper is not None
        assert D(0) <= interval.lower <= interval.upper


@proves("R-BUDGET-4", part="few kinds say little")
@given(st.lists(st.integers(1, 1_000), min_size=LEAST, max_size=KEPT), st.integers(1, KEPT - 1))
def test_the_fewer_kinds_were_seen_the_wider_the_bounds(seen: list[int], kinds: int) -> None:
    some = estimate_interval(Dimension.TOOL_CALLS, [D(one) for one in seen], kinds)
    more = estimate_interval(Dimension.TOOL_CALLS, [D(one) for one in seen], kinds + 1)
    assert some.upper is not None
    assert more.upper is not None
    assert some.lower <= more.lower <= min(seen)
    assert some.upper >= more.upper >= max(seen)
    one = estimate_interval(Dimension.TOOL_CALLS, [D(one) for one in seen], 1)
    assert one.lower == 0
    assert one.upper is not None
    assert one.upper > max(seen)


@proves("R-BUDGET-4", part="one goal many times is one observation")
def test_what_one_goal_needed_each_time_foretells_little_of_another() -> None:
    alike = expected_of([lived(n, 0, 1, 2, total=3, kind="one goal") for n in range(KEPT)])
    (lower, upper), least = alike.rest["m:act:0"]["model_turns"], alike.least["m:act:0"]["model_turns"]
    assert (lower, upper, least) == (D(0), D(5), D(3))
    many = expected_of([lived(n, 0, 1, 2, total=3) for n in range(KEPT)])
    assert many.rest["m:act:0"]["model_turns"] == (D(3), D(3))


@given(st.lists(st.integers(0, 9), max_size=LEAST - 1))
def test_a_handful_of_observations_says_nothing(seen: list[int]) -> None:
    assert estimate_interval(Dimension.STEPS, [D(one) for one in seen]) == UNKNOWN


def test_what_is_known_to_remain_lifts_both_bounds() -> None:
    assert Interval(lower=D(1), upper=D(2)).at_least(D(3)) == Interval(lower=D(3), upper=D(3))
    assert UNKNOWN.at_least(D(3)) == Interval(lower=D(3), upper=None)


@proves("R-BUDGET-4", part="from the graph")
@pytest.mark.parametrize(
    ("node", "asker", "turns", "calls"),
    [("intake", "", 1, 6), ("lookup", "", 1, 6), ("evaluate", "lookup", 1, 5), ("refund", "evaluate", 1, 4),
     ("draft", "refund", 1, 2), ("send", "refund", 0, 2), ("invoke", "send", 0, 2), ("verify", "send", 0, 1),
     ("done", "send", 0, 0)],
)  # fmt: skip
def test_a_refund_needs_what_no_way_to_its_result_can_do_without(
    node: str, asker: str, turns: int, calls: int
) -> None:
    graph = compile_published_graph(
        bundled_content.get_bundled_workflow("support-refund").model_dump(mode="json", exclude_defaults=True)
    )
    found = least_rest(graph, pins(SHIPPED, BOUNDARY, ()).evolve(registry_digest="f" * 64), node, asker)
    assert (found.get("model_turns", 0), found.get("tool_calls", 0)) == (turns, calls)


@proves("R-BUDGET-4", part="the model chooses")
def test_a_loop_needs_no_more_than_the_turn_that_answers() -> None:
    held = pins(TOOLS, BOUNDARY, ()).evolve(registry_digest="e" * 64)
    assert least_rest(GRAPH, held, "act", "") == {"model_turns": 1}
    assert least_rest(GRAPH, held, "capture", "model") == {"model_turns": 1}
    assert least_rest(GRAPH, held, "end-success", "model") == {}


def test_many_threads_may_ask_for_the_least_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        least, "_PathMap", lambda graph, held: SimpleNamespace(least=lambda place: {"steps": place})
    )
    held = [pins(TOOLS, BOUNDARY, ()).evolve(registry_digest=f"{number:064x}") for number in range(400)]
    least._build_path_map.cache_clear()
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            asked = threads.map(lambda one: least_rest(GRAPH, one, "act", ""), held * 25)
            assert all(found == {"steps": ("act", "")} for found in asked)
    finally:
        sys.setswitchinterval(usual)
        least._build_path_map.cache_clear()


def test_a_run_counts_once_and_only_the_newest_count() -> None:
    runs: tuple[FinishedRun, ...] = ()
    for number in range(2 * KEPT):
        runs = with_run(with_run(runs, lived(number, 0, total=1)), lived(number, 0, total=2))
    assert len(runs) == KEPT
    assert {one.used["model_turns"] for one in runs} == {D(2)}


@proves("R-BUDGET-4", part="the rest by place")
def test_from_each_place_the_rest_is_what_was_seen_from_there() -> None:
    expected = expected_of([lived(n, 0, 1, 2, total=3 + n % 2) for n in range(KEPT)])
    turns = {0: (D(3), D(4)), 1: (D(2), D(3)), 2: (D(1), D(2))}
    assert {key: rest["model_turns"] for key, rest in expected.rest.items()} == {
        f"{where}:{step}": pair for step, pair in turns.items() for where in ("m:act", "*:*")
    }
    assert expected_of([lived(n, 0, total=3) for n in range(LEAST - 1)]).rest == {}


@proves("R-BUDGET-4", part="stopped before the last call")
def test_a_run_that_cannot_finish_is_stopped_before_it_spends() -> None:
    expected = expected_of([lived(n, 0, 1, 2, total=3) for n in range(KEPT)])
    run = expecting(expected, model_turns=2)
    assert run.open == {}
    assert (run.state.outcome, run.state.reason) == (TerminalCode.BUDGET_EXHAUSTED, "model_turns")
    assert run.state.usage.get("model_turns", 0) == 0
    (refused,) = run.said("reservation_refused")
    assert (refused.wanted, refused.left, refused.account) == (3, 2, "estimate")


def test_with_enough_it_goes_on_and_without_expectation_it_is_never_stopped_early() -> None:
    expected = expected_of([lived(n, 0, 1, 2, total=3) for n in range(KEPT)])
    assert expecting(expected, model_turns=3).open
    assert expecting(None, model_turns=2).open
    assert expecting(UsageStatistics(), model_turns=1).open


@proves("R-BUDGET-4", part="escalated where the boundary says so")
def test_a_run_that_may_ask_asks_and_shows_both_bounds() -> None:
    asking = BOUNDARY.evolve(on_exhaustion="request")
    expected = expected_of([lived(n, 0, 1, total=3 + n % 3) for n in range(KEPT)])
    held = manifest(GRAPH, pins(TOOLS, asking, ("tool-loop",)), LIMITS | {"model_turns": 2})
    run = Simulation.of(GRAPH, held.evolve(expected=expected))
    run.start()
    (ask,) = run.requests
    lines = {line["dimension"]: line for line in orjson.loads(run.contents[ask.packet])["budget"]}
    assert [lines["model_turns"][name] for name in ("lower", "upper", "asked")] == ["3", "5", "3"]


def wandering(number: int) -> FinishedRun:
    """A run that asks one of many tools, each its own, then answers: no two meet at a tool."""
    passed = (
        PassedPlace(key="m:act:0", used={"model_turns": D(0)}),
        PassedPlace(key=f"t:tool-{number}:0", used={"model_turns": D(1)}),
        PassedPlace(key="m:act:1", used={"model_turns": D(1)}),
    )
    used = {"model_turns": D(2 + number % 2)}
    return FinishedRun(run=str(number), passed=passed, used=used, kind=f"goal {number}")


@proves("R-BUDGET-4", part="bounds where runs choose their own way")
def test_at_a_place_that_nobody_came_by_what_was_seen_after_as_many_actions_counts() -> None:
    run = expecting(expected_of([wandering(number) for number in range(KEPT)]), model_turns=9)
    found = compute_remaining_bounds(run.graph, run.manifest, run.state, "t:tool-new:0")["model_turns"]
    assert found == Interval(lower=D(1), upper=D(3))
    known = compute_remaining_bounds(run.graph, run.manifest, run.state, "m:act:0")["model_turns"]
    assert known == Interval(lower=D(2), upper=D(3))
    later = compute_remaining_bounds(run.graph, run.manifest, run.state, "t:tool-new:7").get(
        "model_turns", UNKNOWN
    )
    assert later.upper is None


def test_nobody_is_stopped_for_what_others_needed_elsewhere() -> None:
    run = expecting(expected_of([wandering(number) for number in range(KEPT)]), model_turns=9)
    short = run.state.evolve(limits={**run.state.limits, "model_turns": D(1)}, usage={}, pending={})
    assert too_little(run.graph, run.manifest, short, "m:act:0") is not None
    assert too_little(run.graph, run.manifest, short, "m:elsewhere:0") is None


def test_the_place_counts_its_steps_up_to_a_bound() -> None:
    assert key_of("m", "act", {}) == "m:act:0"
    assert key_of("t", "orders.lookup", {"steps": D(99)}) == "t:orders.lookup:30"


def test_bounds_are_of_the_runs_own_limits() -> None:
    run = loop()
    assert set(compute_remaining_bounds(GRAPH, run.manifest, run.state, None)) <= set(run.state.limits)
    assert run.manifest.run == UUID(int=7)
