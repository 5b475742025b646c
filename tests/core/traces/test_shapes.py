"""A proof names what has not the shape of a trace; it does not fall over it (X2)."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.traces.test_chain import RUN, linked, trace
from tests.proves import proves
from traces.core.canonical import compute_digest, encode_canonical
from traces.core.integrity.chain import Head, record_hash
from traces.core.integrity.verification import SnapshotRow, check_snapshots, faults_of


@proves("X2", part="a record of another shape")
@pytest.mark.parametrize(
    "changed",
    [
        {"said": 5},
        {"said": {"a": 1}},
        {"said": ["zz"]},
        {"said": [["a"]]},
        {"patch": [1]},
        {"patch": {"a": 5}},
        {"patch": {"a": {"put": 5}}},
        {"patch": {"a": {"drop": 5}}},
        {"binds": ["a"]},
        {"binds": {"snapshot:x": "a"}},
        {"binds": {"snapshot:²": "a"}},
        {"binds": {"snapshot:1": 5}},
    ],
)
def test_a_record_of_another_shape_is_named(changed: dict[str, Any]) -> None:
    commit = linked(Head.start(RUN), 1, 1)
    first, second = commit.records
    body = encode_canonical(changed)
    # As whoever can hash would have altered it, for the hash alone would be noticed anyway.
    second = second._replace(body=body, hash=record_hash(first.hash, body))
    altered = replace(trace(commit), records=[first, second])
    sentences = [fault.sentence for fault in faults_of(altered) if fault.where == "Record"]
    assert "it has not the shape of a record" in sentences


@pytest.mark.parametrize("body", [b"[]", b"5", b"null", b'"\xff"', b"[" * 2_000, b""])
def test_a_body_that_is_no_object_is_named(body: bytes) -> None:
    commit = linked(Head.start(RUN), 1, 1)
    records = [commit.records[0]._replace(body=body), *commit.records[1:]]
    events = [commit.events[0]._replace(body=body), *commit.events[1:]]
    altered = replace(trace(commit), records=records, events=events)
    assert {"Record", "Event"} <= {fault.where for fault in faults_of(altered, commit.head)}


def rows_of(*states: bytes) -> tuple[list[SnapshotRow], dict[int, str]]:
    """These states as snapshots, one a record, and how their records bound them."""
    bound = {number: compute_digest("state", state) for number, state in enumerate(states)}
    return [
        SnapshotRow(number, state, bytes.fromhex(bound[number])) for number, state in enumerate(states)
    ], bound


def test_a_patch_that_does_not_fit_the_state_is_named() -> None:
    rows, bound = rows_of(encode_canonical({"version": 1}), encode_canonical({"version": 2}))
    (fault,) = check_snapshots(rows, {0: {}, 1: {"version": {"put": {"a": 1}}}}, bound)
    assert (fault.where, fault.number) == ("Record", 1)


def test_a_second_snapshot_of_a_number_is_named() -> None:
    rows, bound = rows_of(encode_canonical({"version": 1}))
    (fault,) = check_snapshots([rows[0]._replace(state=b"{}"), *rows], {0: {}}, bound)
    assert (fault.where, fault.sentence) == ("Snapshot", "there are two of it")
