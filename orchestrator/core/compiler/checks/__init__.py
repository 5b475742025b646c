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
from orchestrator.core.compiler.checks.diagnostics import Diagnostic
from orchestrator.core.compiler.checks.graph_view import Drawing

Check = Callable[[Drawing], Iterator[Diagnostic]]
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
    reachability.diagnose_unreachable_nodes,
    reachability.diagnose_dead_ends,
    reachability.diagnose_interrupt_targets,
    bounded_cycles.diagnose_unbounded_cycles,
    termination.diagnose_missing_writes,
    termination.diagnose_missing_endings,
    termination.diagnose_mismatched_codes,
    wiring.diagnose_forbidden_targets,
    wiring.queue_kept,
    wiring.verified_success,
    tools.diagnose_unpermitted_tools,
    tools.fitting_schema,
    tools.diagnose_missing_call_limits,
    tools.diagnose_excessive_timeouts,
    tools.diagnose_missing_verifiers,
    references.known_prompts,
    queues.known_queues,
    references.marked_inputs,
    references.usable_schemas,
    autonomy.tier_declared,
    autonomy.diagnose_missing_justification,
    revision_paths.led_back,
)
