"""An export proves itself, and every altered line of it is noticed (R-TRACE-4)."""

from pathlib import Path
from uuid import UUID

import orjson
import pytest

from tenancy.core.errors import OutsideTenant
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.traces import one_run, write_run
from tests.proves import proves
from traces.core.canonical import compute_digest, encode_canonical
from traces.core.errors import NotAnExport, TraceMissing
from traces.core.integrity.export_format import verify_lines
from traces.exports.jsonl import export_trace, verify_file
from traces.ports import PinnedManifest


def lines_of(house: House, run: UUID | None = None) -> list[bytes]:
    """The lines of a fresh run's export, or of a given one's."""
    run = run or write_run(house.tenant.id).run
    with tenant_transaction(house.tenant.id):
        return list(export_trace(run))


@proves("R-TRACE-4", part="JSONL")
def test_an_export_verifies_without_a_database(house: House, scratch: Path) -> None:
    file = scratch / "run.jsonl"
    file.write_bytes(b"".join(lines_of(house)))
    assert verify_file(file) == []


@proves("R-TRACE-4", part="tampered")
def test_an_export_altered_in_any_line_is_not_whole(house: House) -> None:
    lines = lines_of(house)
    assert len(lines) == 20
    for number in range(1, len(lines)):
        assert noticed(lines[:number] + lines[number + 1 :]), f"line {number} left out"
        changed = orjson.loads(lines[number])
        name = {"snapshot": "state", "end": "lines"}.get(changed["line"], "body")
        changed[name] = 7 if name == "lines" else "eyJhIjoxfQ=="
        assert noticed([*lines[:number], orjson.dumps(changed), *lines[number + 1 :]]), (
            f"line {number} altered"
        )


def noticed(lines: list[bytes]) -> bool:
    """Whether the verifier finds a fault, or will not take the file at all."""
    try:
        return verify_lines(lines) != []
    except NotAnExport:
        return True


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"{}"],
        [b"x"],
        [b"[]"],
        [b'{"line":"event"}'],
        [b'{"line":"header","format":"interlock trace 9"}'],
    ],
)
def test_what_is_no_export_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(NotAnExport):
        verify_lines(lines)


def test_a_run_without_a_trace_has_no_export(house: House) -> None:
    with pytest.raises(TraceMissing):
        lines_of(house, fresh_id())
    with pytest.raises(OutsideTenant):
        next(export_trace(fresh_id()))


@proves("R-TRACE-4", part="self-contained")
def test_an_export_brings_the_head_the_manifest_and_its_pins(house: House) -> None:
    pen = write_run(house.tenant.id)
    pins = encode_canonical({"boundary_digest": "b"})
    manifest = encode_canonical({"pins_digest": compute_digest("pins", pins)})
    with one_run(pen.head, PinnedManifest(manifest, pins)):
        lines = lines_of(house, pen.run)
    assert [orjson.loads(line)["line"] for line in lines[:3]] == ["header", "manifest", "pins"]
    faults = verify_lines(lines)
    assert [fault.where for fault in faults] == ["manifest"], "the factory's first record binds no manifest"
