"""Decide at which records of a run a retry may begin, and with which state (R-SESS-9).

A checkpoint is a record whose state can be entered again: no effect is in flight, no request to people is
open, and no call was checked under rules that may no longer be in force. A retry keeps what the run learnt;
measurements and facts about that moment start from zero.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from orchestrator.core.accounting.side_effects import with_undo_reserves
from orchestrator.core.common.frozen_model import Hex
from orchestrator.core.domain.graph import CompiledGraph
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_state import Call, Fact, RunState, SideEffect
from orchestrator.core.engine.late_reconciliation import with_learnt

# The kinds of nodes that a retry may enter, and what each does next. These nodes request the same thing
# however often they are entered.
ENTERED: Final[Mapping[str, str]] = {
    "goal_intake": "Looks at the goal",
    "classify_intent": "Decides what is meant",
    "resolve_scope": "Checks rights and inputs",
    "init_state": "Sets up its state",
    "act": "Asks the model what to do",
    "respond": "Has the model write a text",
    "tool": "Asks for a call of {tool}",
    "check_tool": "Checks the call of {tool}",
    "branch": "Decides which way to go on",
    "check_completion": "Looks whether all is done",
    "verify_output": "Checks the draft",
}
# The kinds that a retry may not enter. A call restarts from its check, under the rules then in force; a
# question to people is asked by the node that leads to it; a final node is no place to begin.
PASSED_BY: Final = frozenset(
    {
        "approval",
        "ask_user",
        "invoke_tool",
        "capture_observation",
        "verify_observation",
        "update_state",
        "finalize",
        "terminate",
    }
)
# What a retry keeps: what the earlier run found, wrote and tried (`with_later_refusals` adds to it). Counts
# of equal calls are kept, so that a retry cannot bypass their limit; counts of calls and facts, because
# they name what follows. `foreseen`, `planned`, `alarms`, `guarded`, `echoes` and `sent` state what was
# read and how far it can be trusted, which stays true.
KEPT: Final = (
    "position",
    "intent",
    "queue",
    "results",
    "reply",
    "exchanges",
    "failures",
    "answers",
    "asked",
    "repeats",
    "confirmed",
    "opened",
    "refused",
    "malformed",
    "draft",
    "best",
    "best_score",
    "feedback",
    "linked",
    "alarms",
    "guarded",
    "last_askers",
    "reason",
    "foreseen",
    "planned",
    "sent",
    "cut",
    "sent_back",
    "review",
)
# What a retry computes from the earlier run and its own pins.
WORKED_OUT: Final = ("limits", "facts", "echoes", "deeds", "kept", "counters")
# What starts as in any run. The earlier run bore its own usage. Prices, stops, drifts, doubted profiles and
# substitutions are pinned or determined again. `visits` bound one path, as the transitions do. Rates count
# a run's own calls of the last minute. The rest belongs to an effect in flight, a wait or an end, and a
# checkpoint has none of these.
ANEW: Final = (
    "version",
    "status",
    "usage",
    "pending",
    "batch",
    "gates",
    "unwinding",
    "visits",
    "rates",
    "unfinished",
    "stopped_tools",
    "drifted",
    "flagged",
    "stood_down",
    "thrifty",
    "paused",
    "held",
    "halting",
    "frozen",
    "timer",
    "clock_since",
    "clock_ms",
    "interrupt",
    "result",
    "partial",
    "expired",
    "outcome",
    "prices",
    "tool_prices",
    "shortened",
    "away",
    "reconciled",
)


class UnfitReason(StrEnum):
    """The reason why a record is no checkpoint."""

    ENDED = "ended"
    ENDING = "ending"
    PAUSED = "paused"
    ASKS_PEOPLE = "asks_people"
    CALL_UNDER_WAY = "call_under_way"
    PASSED_BY = "passed_by"
    IN_DOUBT = "in_doubt"


SENTENCES: Final[Mapping[UnfitReason, str]] = {
    UnfitReason.ENDED: "the run had ended there",
    UnfitReason.ENDING: "the run was on its way to its end there",
    UnfitReason.PAUSED: "the run was paused there",
    UnfitReason.ASKS_PEOPLE: "people were asked there, or had said something that was not used yet",
    UnfitReason.CALL_UNDER_WAY: "a call was under way there",
    UnfitReason.PASSED_BY: "the run only passed there, between the steps of a call",
    UnfitReason.IN_DOUBT: "nobody knew there whether a change had happened",
}


def checkpoint_of(graph: CompiledGraph, state: RunState) -> RunState | UnfitReason:
    """Return the initial state of a retry after the record `state.version`, or why none can begin there.

    The limits and the undo reserves of the state are still to be computed (`build_retry_state`).
    """
    if (unfit := _find_unfit_reason(graph, state)) is not None:
        return unfit
    kept = {name: getattr(state, name) for name in KEPT}
    # The attempts of an open model call are not kept: it is made again. Budget requests count as in any
    # run.
    counters = state.counters.evolve(model_attempts=0, empty=0, budget_requests=0)
    return RunState(
        **kept,
        limits={},
        facts={name: _counted_back(fact, state.version) for name, fact in state.facts.items()},
        echoes=_renumber_echoes(state),
        deeds=state.deeds,
        counters=counters,
    )


def with_later_refusals(checkpoint: RunState, end: RunState) -> RunState:
    """Return a checkpoint's state with the refusals and alarms that came up until the run's end.

    The refusals are those of people and of rules: a retry from an earlier record must not bypass them.
    Equal calls count as at the checkpoint, because the retry does not know the later results of such calls.
    Effects that were open at the end stay open.
    """
    counters = checkpoint.counters.evolve(
        denials=max(checkpoint.counters.denials, end.counters.denials),
        refusals=max(checkpoint.counters.refusals, end.counters.refusals),
    )
    refused = {
        tool: max(checkpoint.refused.get(tool, 0), end.refused.get(tool, 0))
        for tool in (*checkpoint.refused, *end.refused)
    }
    told = checkpoint.evolve(
        opened={**checkpoint.opened, **end.opened},
        counters=counters,
        refused=refused,
        alarms=tuple(dict.fromkeys((*checkpoint.alarms, *end.alarms))),
        guarded=checkpoint.guarded or end.guarded,
    )
    return with_learnt(told, end)


def build_retry_state(manifest: Manifest, checkpoint: RunState) -> RunState:
    """Return the state of a queued retry: the checkpoint's, with the retry's limits and undo reserves.

    The reserves cover what earlier runs did, at the cost of the tools that are pinned now.
    """
    return with_undo_reserves(manifest.pins, checkpoint.evolve(limits=dict(manifest.limits)))


def describe_next_action(graph: CompiledGraph, state: RunState) -> str:
    """Describe in words the first action of a retry from this state."""
    node = graph.nodes[state.position]
    tool = state.queue[0].tool if state.queue else getattr(node.config, "tool", "")
    return ENTERED.get(node.kind, "").format(tool=tool[:64])


def find_missing_pin(graph: CompiledGraph, pins: Pins, state: RunState) -> str:
    """Name a tool or prompt that the state or its graph needs and the pins lack.

    A tool is needed if a recorded change was made with it. Returns "" if nothing is missing.
    """
    asked = [getattr(node.config, "prompt", None) for node in graph.nodes.values()]
    prompts = sorted({name for name in asked if name is not None and name not in pins.prompts})
    tools = sorted({deed.tool for deed in state.deeds.values() if deed.tool not in pins.by_name})
    return next((f"the tool {name}" for name in tools), "") or next((f"the prompt {n}" for n in prompts), "")


def otherwise_since(then: Mapping[str, SideEffect], end: Mapping[str, SideEffect]) -> tuple[str, ...]:
    """Return the sorted tools whose changes differ in status between a record and the run's end.

    A change that was left as it was does not differ, because no call undid it. An attempt to undo counts as
    a change of its own.
    """
    told = {
        deed.tool
        for key, deed in {**then, **end}.items()
        if key not in then or key not in end or end[key].standing not in (then[key].standing, "left")
    }
    return tuple(sorted(told))


def _find_unfit_reason(graph: CompiledGraph, state: RunState) -> UnfitReason | None:
    """Return the first reason that applies, the plainest first."""
    kind = graph.nodes[state.position].kind
    on_its_way_out = state.interrupt or state.halting or state.unwinding
    asks = state.gates or state.frozen or any(_people_spoke(call) for call in state.queue)
    flies = any(flying.kind != "call_model" for flying in state.pending.values())
    reasons = (
        (UnfitReason.ENDED, state.outcome is not None),
        (UnfitReason.ENDING, on_its_way_out),
        (UnfitReason.PAUSED, state.paused),
        (UnfitReason.ASKS_PEOPLE, asks),
        (UnfitReason.CALL_UNDER_WAY, flies or state.batch or any(_looked_at(call) for call in state.queue)),
        (UnfitReason.PASSED_BY, kind not in ENTERED or (kind == "check_tool" and not state.queue)),
        (UnfitReason.IN_DOUBT, any(deed.standing not in ("done", "open") for deed in state.deeds.values())),
    )
    return next((unfit for unfit, holds in reasons if holds), None)


def _people_spoke(call: Call) -> bool:
    return call.grant is not None or call.request is not None or call.edited


def _looked_at(call: Call) -> bool:
    return call.rung != "intended" or call.arguments is not None or call.key is not None


def _counted_back(fact: Fact, number: int) -> Fact:
    """Return the fact with its record counted back from the record after which the retry begins.

    The result is 0 or less, so that every record of the retry itself comes later.
    """
    return fact.evolve(record=fact.record - number)


def _renumber_echoes(state: RunState) -> dict[str, Hex]:
    """Return the echoes with the records of failed calls counted back, as those of facts are."""
    found: dict[str, Hex] = {}
    for key, given in state.echoes.items():
        if key in state.facts:
            found[key] = given
            continue
        record, rest = key.split(" ", 1)
        found[f"{int(record) - state.version} {rest}"] = given
    return found
