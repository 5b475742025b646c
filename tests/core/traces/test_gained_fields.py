"""A state that gained a field while its run was under way is still the one its patches lead to."""

import pytest

from traces.core.canonical import compute_digest, encode_canonical
from traces.core.integrity.verification import SnapshotRow, check_snapshots


@pytest.mark.parametrize(("gained", "whole"), [({"deeds": {}}, True), ({"deeds": {"c1": 1}}, False)])
def test_a_gained_field_begins_empty(gained: dict[str, object], whole: bool) -> None:
    states = [encode_canonical({"version": 1}), encode_canonical({"version": 2, **gained})]
    bound = {number: compute_digest("state", state) for number, state in enumerate(states)}
    rows = [SnapshotRow(number, state, bytes.fromhex(bound[number])) for number, state in enumerate(states)]
    patches = {0: {}, 1: {"version": {"set": 2}}}
    assert (list(check_snapshots(rows, patches, bound)) == []) is whole
