"""The failure reason given by the source of the fact that a run ended on. Call it in the tenant's context."""

from typing import Any, Final

import orjson

from orchestrator.core.domain.run_state import RunState
from orchestrator.core.readmodel.reason_texts import FailureDetail
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.state_loader import graph_of
from traces.queries import load_payloads

LONGEST: Final = 400


def told_by_source(run: Run, state: RunState) -> FailureDetail | None:
    """Return the `reason` in the answer that a branch examined; None without one.

    The run must have ended for that branch's reason.
    """
    name = _branched_on(run) if run.terminal_code else ""
    fact = dict(state.facts_in_order()).get(name)
    body = load_payloads(run.id, (fact.digest,)).get(fact.digest) if fact is not None else None
    if fact is None or body is None:
        return None
    try:
        text = _reason_in(orjson.loads(body))
    except orjson.JSONDecodeError:
        return None
    return FailureDetail(tool=fact.tool, text=text[:LONGEST]) if text else None


def _branched_on(run: Run) -> str:
    """Return the fact read by the branch that gave the run its reason; empty without one."""
    if not run.reason:
        return ""
    branches = (node for node in graph_of(run.tenant_id, run.workflow_version_id).spec.nodes)
    for node in branches:
        config: dict[str, Any] = dict(node.config) if node.kind == "branch" else {}
        if config.get("reason") == run.reason:
            return str(config.get("predicate", {}).get("parameters", {}).get("fact", ""))
    return ""


def _reason_in(answer: Any) -> str:
    found = answer.get("reason") if isinstance(answer, dict) else None
    return found if isinstance(found, str) else ""
