"""Exact replay: feed the recorded events through the core; every record must be the same (R-TRACE-6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from orchestrator.core.common.errors import ContentMissing, OrchestratorError
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.run_events import EVENT, Headroom
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.machine import CORE_VERSION, advance
from orchestrator.core.workflow.node_protocol import AdvanceResult, Transition
from traces.core.canonical import encode_canonical
from traces.core.integrity.chain import Head, LinkedRows, UnchainedTransition, link_transitions
from traces.core.state_patch import diff_states


class Report(FrozenModel):
    """The result of a replay; `first_difference` is the number of the first record that differs.

    `what_if`: the run was recorded under another version of the core, so a difference does not mean
    corruption.
    """

    matches: bool
    records: int
    first_difference: int | None = None
    detail: str = ""
    what_if: bool = False


@dataclass(slots=True)
class _Group:
    """The records of one walk; the first one holds the event."""

    first: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


def replay_records(
    graph: CompiledGraph,
    manifest: Manifest,
    state: RunState,
    records: Sequence[bytes],
    salt: bytes,
    contents: Mapping[str, bytes],
    head: Head,
) -> Report:
    """Replay records (canonical bytes, in order, without record 0's submission) from the opening state.

    `head` is the state of the chains after record 0: every record is linked again, with all its trace
    entries, and must come out byte for byte.
    """
    number = 0
    for group in _group_records(records):
        other = group.first["core"] != CORE_VERSION
        try:
            event = EVENT.validate_json(contents[group.first["event"]])
            room = Headroom.model_validate(group.first["headroom"] or {})
            walk = advance(graph, manifest, state, event, room, ContentStore(salt, contents))
        except (KeyError, ContentMissing):
            return _build_replay_report(
                False, number, group.first["number"], "content was erased", what_if=other
            )
        except OrchestratorError as error:
            return _build_replay_report(False, number, group.first["number"], str(error), what_if=other)
        for made, held in zip(walk.transitions, group.records, strict=False):
            difference = _describe_difference(made, held)
            if difference:
                return _build_replay_report(False, number, held["number"], difference, what_if=other)
            number += 1
        if len(walk.transitions) != len(group.records):
            return _build_replay_report(
                False, number, group.first["number"], "another number of transitions", what_if=other
            )
        linked = _link_transitions(head, walk, group)
        for row, held_bytes in zip(linked.records, group.bodies, strict=True):
            if row.body != held_bytes:
                return _build_replay_report(False, number, row.number, "what was said differs", what_if=other)
        state, head = walk.state, linked.head
    return Report(matches=True, records=number)


def _build_replay_report(matches: bool, records: int, at: int, detail: str, *, what_if: bool) -> Report:
    return Report(matches=matches, records=records, first_difference=at, detail=detail, what_if=what_if)


def _group_records(records: Sequence[bytes]) -> list[_Group]:
    groups: list[_Group] = []
    for body in records:
        record = orjson.loads(body)
        if record["event"]:
            groups.append(_Group(record))
        if groups:
            groups[-1].records.append(record)
            groups[-1].bodies.append(body)
    return groups


def _link_transitions(head: Head, walk: AdvanceResult, group: _Group) -> LinkedRows:
    """Link the walk as the commit linked it; the commit's other content is taken as recorded."""
    return link_transitions(
        head,
        [_convert_transition(made) for made in walk.transitions],
        core_version=group.first["core"],
        event_digest=group.first["event"],
        headroom=group.first["headroom"],
        binds=group.records[-1]["binds"],
        at=datetime.fromisoformat(group.first["at"]),
    )


def _convert_transition(made: Transition) -> UnchainedTransition:
    return UnchainedTransition(
        source=made.source,
        outcome=made.outcome,
        guard=made.guard,
        target=made.target,
        phase=made.phase,
        patch=diff_states(made.before, made.after),
        said=made.said,
        effects=made.effects,
    )


def _describe_difference(made: Transition, held: Mapping[str, Any]) -> str:
    """Return which part of the record differs; empty if none does."""
    move = _convert_transition(made)
    parts = {
        "source": move.source,
        "outcome": move.outcome,
        "guard": move.guard,
        "target": move.target,
        "phase": move.phase,
        "effects": list(move.effects),
    }
    for name, value in parts.items():
        if held[name] != value:
            return f"{name}: recorded {held[name]!r}, replayed {value!r}"
    if encode_canonical(held["patch"]) != encode_canonical(move.patch):
        return "the patch of the state differs"
    return "" if len(held["said"]) == len(move.said) else "another number of events"
