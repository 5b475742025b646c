"""Linking: every record and event hangs on the one before it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proves import proves
from traces.core.canonical import encode_canonical
from traces.core.errors import NotCanonical
from traces.core.events import trace_events
from traces.core.integrity.chain import (
    START,
    Head,
    LinkedRows,
    TraceEntry,
    UnchainedTransition,
    hash_of,
    link_transitions,
    record_hash,
)
from traces.core.integrity.verification import Trace, check_events, check_records, faults_of
from traces.core.payload_fields import CONTENT

RUN = UUID(int=5)
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def moves(*sizes: int) -> list[UnchainedTransition]:
    """Transitions that say so many things each."""
    return [
        UnchainedTransition(
            source=f"n{index}", outcome="ok", guard=None, target=f"n{index + 1}", phase=9,
            patch={"version": {"set": index}}, effects=(),
            said=tuple(
                TraceEntry(phase=9, actor="interlock", body=trace_events.RunResumed(cause=f"{index}.{word}"))
                for word in range(size)
            ),
        )
        for index, size in enumerate(sizes)
    ]  # fmt: skip


def linked(head: Head, *sizes: int, headroom: dict[str, Any] | None = None) -> LinkedRows:
    """One commit."""
    return link_transitions(
        head, moves(*sizes), core_version=3, event_digest="f" * 64, headroom=headroom,
        binds={"entry:1": "a" * 64}, at=AT,
    )  # fmt: skip


def trace(*commits: LinkedRows) -> Trace:
    """Commits as one trace without content."""
    return Trace(
        run=RUN, salts=(b"s" * 32,), snapshots=(), payloads=(),
        records=[record for commit in commits for record in commit.records],
        events=[event for commit in commits for event in commit.events],
    )  # fmt: skip


@proves("R-TRACE-1", part="chain")
@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=4))
@settings(max_examples=60)
def test_any_sequence_of_commits_is_one_whole_chain(sizes: list[list[int]]) -> None:
    head, commits = Head.start(RUN), []
    for one in sizes:
        commits.append(linked(head, *one))
        head = commits[-1].head
    whole = trace(*commits)
    assert [event.seq for event in whole.events] == list(range(1, head.event_seq + 1))
    assert [record.number for record in whole.records] == list(range(head.record_number + 1))
    told = [(event.hash.hex(), "2026-11-21T12:00:00.000000Z") for event in whole.events]
    assert [*check_records(whole.records, head), *check_events(whole.events, told)] == []


def test_a_commit_says_once_what_it_was_fed_and_what_it_bound() -> None:
    bodies = [
        orjson.loads(record.body) for record in linked(Head.start(RUN), 1, 2, 0, headroom={"a": "1"}).records
    ]
    assert [body["event"] for body in bodies] == ["f" * 64, "", ""]
    assert [body["headroom"] for body in bodies] == [{"a": "1"}, None, None]
    assert [body["binds"] for body in bodies] == [{}, {}, {"entry:1": "a" * 64}]
    assert [len(body["said"]) for body in bodies] == [1, 2, 0]


def test_a_commit_of_nothing_leaves_the_head_where_it_was() -> None:
    head = linked(Head.start(RUN), 1).head
    assert linked(head) == LinkedRows(head=head, records=(), events=())


def test_the_same_commit_has_the_same_bytes() -> None:
    assert linked(Head.start(RUN), 2, 1) == linked(Head.start(RUN), 2, 1)
    assert linked(Head.start(RUN), 1).head != linked(Head.start(UUID(int=6)), 1).head


def test_a_record_and_an_event_of_equal_content_have_different_hashes() -> None:
    event = linked(Head.start(RUN), 1).events[0]
    assert hash_of(event, START) == event.hash != record_hash(START, event.body)


def test_a_float_in_the_headroom_is_refused() -> None:
    with pytest.raises(NotCanonical):
        linked(Head.start(RUN), 1, headroom={"left": 0.5})


@proves("X2", part="pure")
@given(st.integers(0, 5), st.sampled_from(["actor", "phase", "kind", "body", "hash", "previous"]))
def test_an_altered_event_is_named(index: int, column: str) -> None:
    commit = linked(Head.start(RUN), 3, 3)
    rows = list(commit.events)
    value = getattr(rows[index], column)
    altered: Any = {
        "actor": "x", "phase": 2, "kind": "run_paused",
        "body": encode_canonical({"cause": "x", "kind": "run_resumed", "v": 1}),
    }.get(column) or bytes([value[0] ^ 1]) + value[1:]  # fmt: skip
    change: dict[str, Any] = {column: altered}
    rows[index] = rows[index]._replace(**change)
    told = [(event.hash.hex(), "2026-11-21T12:00:00.000000Z") for event in commit.events]
    first = next(check_events(rows, told))
    assert (first.number, first.column) == (index + 1, column)


def test_a_trace_without_records_is_whole_only_for_a_run_that_never_moved() -> None:
    assert faults_of(trace(), Head.start(RUN)) == []
    assert faults_of(trace(), linked(Head.start(RUN), 1).head) != []


def test_the_table_of_content_names_real_fields() -> None:
    kinds = {
        model.model_fields["kind"].default: model for model in trace_events.TraceEventBody.__subclasses__()
    }
    for kind, fields in CONTENT.items():
        assert set(fields) <= set(kinds[kind].model_fields), kind


def test_every_kind_of_event_is_in_the_union() -> None:
    for model in trace_events.TraceEventBody.__subclasses__():
        kind = model.model_fields["kind"].default
        assert kind in str(trace_events.BODY.core_schema), kind


@proves("SPEED", part="linking")
def test_linking_a_commit_costs_a_few_times_what_its_rows_cost_to_write_down_and_hash() -> None:
    word = trace_events.CallObserved(call="c1", effect="e" * 32, status="ok", observation="a" * 64, size=11)
    paid = trace_events.BudgetSettled(
        effect="e" * 32, amounts={"tool_calls": Decimal(1), "steps": Decimal(1)}
    )
    said = tuple(TraceEntry(phase=9, actor="interlock", body=body) for body in (word, paid))
    patch = {"usage": {"put": {"steps": Decimal(3)}}}
    one = UnchainedTransition(
        source="a", outcome="ok", guard=None, target="b", phase=9, patch=patch, said=said, effects=("x" * 32,)
    )

    def linked() -> LinkedRows:
        head, four = Head.start(RUN), [one] * 4
        return link_transitions(
            head, four, core_version=1, event_digest="", headroom={"a": "1"}, binds={}, at=AT
        )

    bodies = [row.body for row in linked().records] + [row.body for row in linked().events]
    rows = [orjson.loads(body) for body in bodies]

    def floor() -> None:
        for row in rows:
            sha256(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)).hexdigest()

    assert least(linked) < 16 * least(floor)


def least(work: Callable[[], object]) -> float:
    """Seconds of the fastest of many times: what the code costs, whoever else is at the machine."""
    costs = []
    for _ in range(100):
        before = time.perf_counter()
        work()
        costs.append(time.perf_counter() - before)
    return min(costs)
