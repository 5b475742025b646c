"""The numbered checks of a workflow graph (R-GRAPH-2, R-GRAPH-5, R-GRAPH-8, R-GRAPH-20); `ALL` runs them
in order.
"""

from collections.abc import Callable, Iterator

from orchestrator.core.checks import (
    autonomy,
    closing,
    ends,
    loops,
    queues,
    returning,
    shape,
    tools,
    wiring,
    words,
)
from orchestrator.core.checks.drawing import Drawing
from orchestrator.core.checks.fault import Fault

Check = Callable[[Drawing], Iterator[Fault]]
ALL: tuple[Check, ...] = (
    words.unique_ids,
    words.known_kinds,
    words.fitting_configs,
    words.known_guards,
    words.known_ends,
    words.one_entry,
    closing.ways_out,
    closing.own_outcomes,
    closing.answered_outcomes,
    closing.closed_outcomes,
    shape.reachable,
    shape.ending,
    shape.interrupts,
    loops.limited,
    ends.written,
    ends.explicit,
    ends.fitting,
    wiring.allowed,
    wiring.queue_kept,
    wiring.verified_success,
    tools.permitted,
    tools.fitting_schema,
    tools.budgeted,
    tools.timed,
    tools.verified,
    words.known_prompts,
    queues.known_queues,
    words.marked_inputs,
    words.usable_schemas,
    autonomy.tier_declared,
    autonomy.justified,
    returning.led_back,
)
