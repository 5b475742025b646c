"""The rules of a circuit: closed, open, half-open, and exactly one probe (R-BUDGET-13)."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.tools.circuit_breaker import (
    Circuit,
    Setting,
    derive_visible_state,
    is_circuit_blocking,
    model_silence_tells,
    tool_silence_tells,
    wait_ms,
    with_circuit_reset,
    with_circuit_trip,
    with_failure,
    with_probe,
    with_probe_released,
    with_success,
)
from tests.proves import proves

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SETTING = Setting(threshold=3, cooldown_seconds=30)
LEASE = timedelta(seconds=5)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def broken() -> Circuit:
    """Opened at noon."""
    circuit = Circuit()
    for _ in range(3):
        circuit = with_failure(circuit, 0, NOON, "timeout", SETTING)
    return circuit


@proves("R-BUDGET-13", part="threshold")
def test_failures_in_a_row_open_a_circuit_and_a_success_between_them_does_not() -> None:
    twice = with_failure(with_failure(Circuit(), 0, NOON, "timeout", SETTING), 0, NOON, "crashed", SETTING)
    assert (twice.state, twice.failures, twice.reason) == ("closed", 2, "crashed")
    assert with_success(twice, twice.changes).failures == 0
    opened = with_failure(twice, 0, NOON, "timeout", SETTING)
    assert (opened.state, opened.until) == ("open", after(30))


@proves("R-BUDGET-13", part="cooldown")
def test_an_open_circuit_lets_nothing_through_until_its_cooldown_is_over() -> None:
    opened = broken()
    assert is_circuit_blocking(opened, after(29.9))
    assert wait_ms(opened, after(20)) == 10_000
    assert with_probe(opened, after(29.9), LEASE) is None
    assert not is_circuit_blocking(opened, after(30))
    assert (derive_visible_state(opened, after(29)), derive_visible_state(opened, after(30))) == (
        "open",
        "half_open",
    )


@proves("R-BUDGET-13", part="late failures open nothing")
def test_failures_of_calls_from_before_a_reset_are_not_counted() -> None:
    again = with_circuit_reset(broken())
    for _ in range(5):
        again = with_failure(again, 0, after(1), "timeout", SETTING)
    assert (again.state, again.failures) == ("closed", 0)
    for _ in range(3):
        again = with_failure(again, again.changes, after(2), "timeout", SETTING)
    assert again.state == "open"


def test_a_good_probe_closes_and_a_bad_one_opens_for_a_whole_cooldown() -> None:
    probe = with_probe(broken(), after(30), LEASE)
    assert probe is not None
    assert with_probe(probe, after(31), LEASE) is None
    closed = with_success(probe, probe.changes)
    assert (closed.state, closed.failures, closed.until) == ("closed", 0, None)
    again = with_failure(probe, probe.changes, after(31), "timeout", SETTING)
    assert (again.state, again.until) == ("open", after(61))


def test_a_lost_prober_is_replaced_and_its_late_word_is_not_heard() -> None:
    lost = with_probe(broken(), after(30), LEASE)
    assert lost is not None
    assert with_probe(lost, after(34), LEASE) is None
    second = with_probe(lost, after(35), LEASE)
    assert second is not None
    assert with_success(second, lost.changes) == second
    assert with_failure(second, lost.changes, after(36), "timeout", SETTING) == second
    assert with_success(second, second.changes).state == "closed"


def test_answers_from_before_a_trip_do_not_close_it() -> None:
    opened = with_circuit_trip(Circuit(), NOON, "overrun", SETTING)
    assert with_success(opened, 0) == opened
    assert with_failure(opened, 0, after(1), "timeout", SETTING) == opened
    assert with_circuit_reset(opened).state == "closed"


def test_a_probe_that_told_nothing_makes_room_for_the_next() -> None:
    probe = with_probe(broken(), after(30), LEASE)
    assert probe is not None
    free = with_probe_released(probe, probe.changes, after(31), SETTING)
    assert (free.state, is_circuit_blocking(free, after(35.9))) == ("open", True)
    assert with_probe(free, after(36), LEASE) is not None
    hasty = Setting(threshold=3, cooldown_seconds=2)
    assert with_probe_released(probe, probe.changes, after(31), hasty).until == after(33)


@proves("R-BUDGET-13", part="silence that tells")
@pytest.mark.parametrize(
    ("had", "own", "of_a_model", "of_a_tool"),
    [
        (60_000, 60_000, True, True),
        (20_000, 60_000, True, True),
        (19_999, 60_000, False, False),
        (10_000, 10_000, True, True),
        (9_999, 10_000, False, False),
        (60_000, 600_000, True, False),
        (200_000, 600_000, True, True),
    ],
)
def test_silence_tells_of_the_other_side_where_it_was_long_enough(
    had: int, own: int, of_a_model: bool, of_a_tool: bool
) -> None:
    assert (model_silence_tells(had, own), tool_silence_tells(had, own)) == (of_a_model, of_a_tool)


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["probe", "fail", "succeed", "release", "trip", "reset"]),
        st.integers(0, 4),
        st.integers(0, 40),
    ),
    max_size=40,
)


@proves("R-BUDGET-13", part="one probe")
@given(MOVES)
def test_whatever_happens_one_probe_is_out_at_most(moves: list[tuple[str, int, int]]) -> None:
    """`back` picks an older change number, so that late and foreign reports are among the moves."""
    circuit, now, out = Circuit(), NOON, None
    for move, back, seconds in moves:
        now += timedelta(seconds=seconds)
        before = circuit
        if move == "probe":
            probe = with_probe(circuit, now, LEASE)
            if probe is not None:
                assert out is None or now >= out
                circuit, out = probe, now + LEASE
        elif move == "fail":
            circuit = with_failure(circuit, circuit.changes - back, now, "timeout", SETTING)
        elif move == "succeed":
            circuit = with_success(circuit, circuit.changes - back)
        elif move == "release":
            circuit = with_probe_released(circuit, circuit.changes - back, now, SETTING)
        elif move == "trip":
            circuit = with_circuit_trip(circuit, now, "overrun", SETTING)
        else:
            circuit = with_circuit_reset(circuit)
        if circuit.state != "half_open":
            out = None
        assert circuit.changes >= before.changes
        assert (circuit.state == "closed") == (circuit.until is None)
        assert circuit.state != "closed" or circuit.failures < SETTING.threshold
        assert circuit.state == before.state or circuit.changes > before.changes


@dataclass(slots=True)
class Watcher:
    """Knows a circuit by what was seen of it: which calls are out, and in which `epoch` each was let out. An
    epoch ends where somebody resets, trips or probes, and where a report opened or closed the circuit."""

    epoch: int = 0
    state: str = "closed"
    row: int = 0
    calls: list[tuple[int, int]] = field(default_factory=list)

    def turns(self, state: str) -> None:
        """A new epoch, in which no failure is known."""
        self.epoch, self.state, self.row = self.epoch + 1, state, 0

    def hears(self, epoch: int, *, good: bool) -> None:
        """A report of a call of `epoch`."""
        if epoch != self.epoch:
            return
        self.row = 0 if good else self.row + 1
        if self.state == "half_open":
            self.turns("closed" if good else "open")
        elif self.row == SETTING.threshold:
            self.turns("open")


REPORTS = st.lists(
    st.tuples(
        st.sampled_from(["call", "call", "call", "fail", "fail", "fail", "succeed", "trip", "reset"]),
        st.integers(0, 1_000),
    ),
    max_size=60,
)


@proves("R-BUDGET-13", part="late failures open nothing, whatever the order")
@given(REPORTS)
def test_only_calls_of_the_present_epoch_move_a_circuit(moves: list[tuple[str, int]]) -> None:
    """Calls go out one by one and report in any order, once each; between them people reset and trip."""
    circuit, now, seen_by = Circuit(), NOON, Watcher()
    for move, pick in moves:
        now += timedelta(seconds=31)
        if move == "call":
            if circuit.state != "closed":
                probe = with_probe(circuit, now, LEASE)
                assert probe is not None
                circuit = probe
                seen_by.turns("half_open")
            seen_by.calls.append((seen_by.epoch, circuit.changes))
        elif move in ("fail", "succeed"):
            if not seen_by.calls:
                continue
            epoch, changes = seen_by.calls.pop(pick % len(seen_by.calls))
            if move == "fail":
                circuit = with_failure(circuit, changes, now, "timeout", SETTING)
            else:
                circuit = with_success(circuit, changes)
            seen_by.hears(epoch, good=move == "succeed")
        elif move == "trip":
            circuit = with_circuit_trip(circuit, now, "overrun", SETTING)
            seen_by.turns("open")
        else:
            circuit = with_circuit_reset(circuit)
            seen_by.turns("closed")
        assert circuit.state == seen_by.state
        assert circuit.state != "closed" or circuit.failures == seen_by.row
