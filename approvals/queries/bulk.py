"""Comparison of several requests: shared and differing arguments (R-APPR-9), in the tenant's context."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from approvals.core.argument_display import Argument, shown_arguments
from approvals.core.bulk import BulkKey, explain_bulk_mismatch
from approvals.core.packet import alarming_pointers, read_packet
from approvals.core.policy import Decider
from approvals.models import Request
from approvals.queries.inbox import Row, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRequest:
    """One compared request: its row, and its values at the differing places (None: it has none)."""

    row: Row
    values: tuple[tuple[str, Argument | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonTable:
    """The comparison table.

    `shared` are the arguments that are equal in all requests, `places` those that differ. `apart` is why
    the requests may not be decided together, or "".
    """

    rows: tuple[ComparedRequest, ...]
    shared: tuple[Argument, ...]
    places: tuple[str, ...]
    apart: str

    @property
    def decidable(self) -> tuple[Row, ...]:
        """The requests that the reader may decide now."""
        return tuple(row for row in (one.row for one in self.rows) if _is_decidable(row))


def _is_decidable(row: Row) -> bool:
    free = row.is_open and not row.stands and not row.voted
    return free and row.refusal is None and row.no_yes is None


def build_bulk_candidate(request: Request) -> BulkKey:
    """Build the properties of a request that the bulk rule compares."""
    tool = orjson.loads(bytes(request.packet)).get("tool") or {}
    return BulkKey(
        kind=request.kind, tool=request.tool, definition=tool.get("digest", ""), risk=request.risk,
        has_amount=request.has_amount,
    )  # fmt: skip


def build_bulk_comparison(requests: Sequence[Request], decider: Decider) -> ComparisonTable:
    """Compare the requests, in their order, for one reader."""
    why = explain_bulk_mismatch([build_bulk_candidate(request) for request in requests])
    leaves = [_index_argument_leaves(request) for request in requests]
    places = tuple(dict.fromkeys(pointer for one in leaves for pointer in one))
    same = [place for place in places if len({one.get(place) for one in leaves}) == 1]
    differing = tuple(place for place in places if place not in same)
    return ComparisonTable(
        rows=tuple(
            ComparedRequest(row=row, values=tuple((place, one.get(place)) for place in differing))
            for row, one in zip(rows_of(requests, decider), leaves, strict=True)
        ),
        shared=tuple(leaves[0][place] for place in same),
        places=differing,
        apart=why,
    )


def _index_argument_leaves(request: Request) -> dict[str, Argument]:
    """Return a call's arguments by pointer; a request that is no call has none."""
    if request.kind != "action":
        return {}
    packet = read_packet(bytes(request.packet))
    found = orjson.loads(packet.arguments) if packet.arguments else {}
    shown = shown_arguments(found, packet.provenance, alarming=alarming_pointers(packet))
    return {one.pointer: one for one in shown}
