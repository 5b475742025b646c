"""An export of a real run cannot lose, or swap, what its first record bound (R-TRACE-4)."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.factories.world import World
from tests.proves import proves
from traces.actions import erase_run_payloads
from traces.core.errors import NotAnExport
from traces.core.integrity.export_format import verify_lines
from traces.exports.jsonl import export_trace

SUM = "How much is (12 + 30) * 2?"
FORGED = b64encode(b'{"registry":"forged"}').decode()
Lines = list[dict[str, Any]]


@pytest.fixture
def lines(world: World) -> Lines:
    """The lines of a run that ended."""
    run = world.submit("tool-loop", SUM)
    assert world.drive(run).terminal_code == "SUCCESS"
    with tenant_transaction(world.id):
        found = [orjson.loads(line) for line in export_trace(run)]
    assert faults(found) == set()
    return found


def faults(lines: Lines) -> set[str]:
    """Where the verifier finds fault with lines whose end counts them."""
    counted = [*lines[:-1], {**lines[-1], "lines": len(lines) - 1}]
    return {fault.where for fault in verify_lines(map(orjson.dumps, counted))}


def without(kind: str) -> Callable[[Lines], Lines]:
    """The lines without those of a kind."""
    return lambda lines: [line for line in lines if line["line"] != kind]


def forged(kind: str) -> Callable[[Lines], Lines]:
    """The lines with another body in that of a kind."""
    return lambda lines: [line | {"body": FORGED} if line["line"] == kind else line for line in lines]


def forged_alone(lines: Lines) -> Lines:
    """Forged pins, and no manifest to hold them against."""
    return forged("pins")(without("manifest")(lines))


def of_another_tenant(lines: Lines) -> Lines:
    """The same run, said to be somebody else's."""
    return [lines[0] | {"tenant": str(fresh_id())}, *lines[1:]]


@proves("R-TRACE-4", part="what the first record bound")
@pytest.mark.parametrize(
    ("altered", "where"),
    [
        (without("manifest"), "manifest"),
        (forged("manifest"), "manifest"),
        (forged_alone, "manifest"),
        (without("pins"), "pins"),
        (forged("pins"), "pins"),
        (of_another_tenant, "header"),
    ],
)
def test_what_the_first_record_bound_is_missed(
    lines: Lines, altered: Callable[[Lines], Lines], where: str
) -> None:
    assert faults(altered(lines)) == {where}


@pytest.mark.parametrize("kind", ["manifest", "pins"])
def test_nothing_stands_twice_before_the_true_one(lines: Lines, kind: str) -> None:
    with pytest.raises(NotAnExport, match=kind):
        faults([lines[0], {"line": kind, "body": FORGED}, *lines[1:]])


@proves("R-TRACE-4", part="of a run under way, and of one that was erased")
def test_no_fault_is_found_with_the_manifest_of_a_run_under_way_or_erased(world: World) -> None:
    run = world.submit("tool-loop", SUM)
    with tenant_transaction(world.id):
        assert verify_lines(export_trace(run)) == []
    world.drive(run)
    with tenant_transaction(world.id):
        assert erase_run_payloads(run) > 0
        # Nothing in its trace says that it was erased: that alone is a fault.
        assert {fault.where.split()[0] for fault in verify_lines(export_trace(run))} == {"Payload", "Salt"}


ODD: tuple[Any, ...] = (None, -1, 2**63, 1.5, True, "", "zz", "x" * 64, [], {}, [1], "2026-01-01T00:00:00",
                        "0001-01-01T00:00:00+23:59")  # fmt: skip


@proves("X2", part="whatever stands in a file")
def test_whatever_stands_in_a_line_is_a_fault_or_no_export(lines: Lines) -> None:
    first = {line["line"]: number for number, line in reversed(list(enumerate(lines[:-1])))}
    for number in first.values():
        line = lines[number]
        for name, value in ((name, value) for name in line for value in ODD if value != line[name]):
            changed = [*lines[:number], line | {name: value}, *lines[number + 1 :]]
            # A run need not claim a head.
            assert noticed(changed) or (name, value) == ("head", None), (line["line"], name, value)


def noticed(lines: Lines) -> bool:
    """Whether the verifier finds a fault, or takes the lines for no export; it raises nothing else."""
    try:
        return faults(lines) != set()
    except NotAnExport:
        return True
