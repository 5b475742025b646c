"""The numbered checks of a workflow graph (R-GRAPH-2, R-GRAPH-5, R-GRAPH-8, R-GRAPH-20); `ALL` runs them
in order.
"""

from collections.abc import Callable, Iterator

from orchestrator.core.compiler.checks import (
    autonomy,
    bounded_cycles,
    exhaustiveness,
    queues,
    reachability,
    references,
    revision_paths,
    termination,
    tools,
    wiring,
)
from orchestrator.core.compiler.checks.diagnostics import Fault
from orchestrator.core.compiler.checks.graph_view import Drawing

Check = Callable[[Drawing], Iterator[Fault]]
ALL: tuple[Check, ...] = (
    references.unique_ids,
    references.known_kinds,
    references.fitting_configs,
    references.known_guards,
    references.known_ends,
    references.one_entry,
    exhaustiveness.ways_out,
    exhaustiveness.own_outcomes,
    exhaustiveness.answered_outcomes,
    exhaustiveness.closed_outcomes,
    reachability.reachable,
    reachability.ending,
    reachability.interrupts,
    bounded_cycles.limited,
    termination.written,
    termination.explicit,
    termination.fitting,
    wiring.allowed,
    wiring.queue_kept,
    wiring.verified_success,
    tools.permitted,
    tools.fitting_schema,
    tools.budgeted,
    tools.timed,
    tools.verified,
    references.known_prompts,
    queues.known_queues,
    references.marked_inputs,
    references.usable_schemas,
    autonomy.tier_declared,
    autonomy.justified,
    revision_paths.led_back,
)
