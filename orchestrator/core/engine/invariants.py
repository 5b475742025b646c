"""The invariants that hold after every walk; cheap enough for production (R-LOOP-2)."""

from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.errors import Corrupt
from traces.core.state_patch import select_replaced_entries

MONEY_AND_COUNTS = (
    "steps",
    "model_turns",
    "tool_calls",
    "external_calls",
    "side_effects",
    "granted_side_effects",
)


def check_invariants(before: RunState, after: RunState) -> None:
    """Check the invariants.

    Token and money figures may pass their limit only by a provider's overrun, which is booked by name;
    figures that Interlock itself counts never may.
    Raises: Corrupt naming the rule that does not hold.
    """
    if after.version <= before.version:
        raise Corrupt(rule="version increases")
    for dimension in MONEY_AND_COUNTS:
        left = after.left(dimension)
        if left is not None and left < 0:
            raise Corrupt(rule=f"{dimension} stays within its limit")
    if after.facts is not before.facts:
        _facts_rest(before, after)
    if any(held.mutating for held in after.pending.values()) and len(after.pending) > 1:
        raise Corrupt(rule="a mutating call flies alone")
    if after.outcome is not None and (after.pending or after.gates):
        raise Corrupt(rule="nothing is open after the end")


def _facts_rest(before: RunState, after: RunState) -> None:
    for fact in select_replaced_entries(before.facts, after.facts).values():
        if not (fact.digest and fact.validator):
            raise Corrupt(rule="a fact rests on a verified observation")
