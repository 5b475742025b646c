"""Reads of runs for doors and pages. All inside the tenant's context unless they say otherwise."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any
from uuid import UUID

import orjson
from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast

from budgets.core.amounts import ZERO
from budgets.core.dimension import Dimension
from budgets.queries import get_usage_lines
from orchestrator.core.common.errors import RunNotFound
from orchestrator.core.common.goal import Goal
from orchestrator.core.domain.run_state import RunState
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.state_loader import state_of
from traces.core.run_sentence import SentenceFacts, format_run_sentence
from traces.models import Event, Record
from traces.queries import load_payloads, load_state_parts

FILTERS = ("status", "workflow", "terminal_code")


def filter_runs(filters: Mapping[str, Any]) -> QuerySet[Run]:
    """Runs by status, workflow, terminal_code, created_after and q (a part of the id or the workflow)."""
    found = Run.objects.all()
    for name in FILTERS:
        if name in filters:
            found = found.filter(**{name: filters[name]})
    if "created_after" in filters:
        found = found.filter(created_at__gt=filters["created_after"])
    if "q" in filters:
        named = Q(workflow__icontains=filters["q"]) | Q(shown_id__icontains=filters["q"])
        found = found.annotate(shown_id=Cast("id", CharField())).filter(named)
    return found


def run_of(run_id: UUID | None) -> Run:
    """One run. Raises RunNotFound, also for another tenant's."""
    run = (
        Run.objects.select_related("workflow_version").filter(id=run_id).first()
        if run_id is not None
        else None
    )
    if run is None:
        raise RunNotFound
    return run


def state_now(run_id: UUID) -> RunState:
    """The run's state, recalled."""
    found = load_state_parts(run_id)
    return state_of(found.state, found.patches)[0]


def result_of(run: Run) -> dict[str, Any] | None:
    """The result or the report of an ended run; None while it is under way."""
    if not run.result:
        return None
    body = load_payloads(run.id, (run.result,)).get(run.result)
    document: dict[str, Any] = orjson.loads(body) if body is not None else {"erased": True}
    return document


def goal_of(run: Run) -> Goal:
    """The goal that a run was admitted with."""
    body = ManifestRow.objects.values_list("body", flat=True).get(id=run.id)
    return Goal.model_validate_json(orjson.dumps(orjson.loads(bytes(body))["goal"]))


def path_of(run_id: UUID) -> tuple[str, ...]:
    """The nodes the run went through, neighbours once."""
    targets = Record.objects.filter(run_id=run_id).order_by("number").values_list("target", flat=True)
    return path_through(targets)


def path_through(targets: Iterable[str]) -> tuple[str, ...]:
    """The path of transitions to these nodes: a node that a run stayed at is named once."""
    return tuple(node for node, _ in groupby(targets))


def calls_of(run_id: UUID) -> Counter[str]:
    """How often each tool was called, as the trace has it: attempts, and reading back what was changed."""
    bodies = Event.objects.filter(run_id=run_id, kind="call_attempted").values_list("body", flat=True)
    return Counter(orjson.loads(bytes(body))["tool"] for body in bodies)


def sentence_of(run: Run) -> str:
    """The run in one sentence (R-GRAPH-18)."""
    state = state_now(run.id)
    manifest = orjson.loads(bytes(ManifestRow.objects.values_list("body", flat=True).get(id=run.id)))
    spent = get_usage_lines(run.id)
    return format_run_sentence(
        SentenceFacts(
            workflow=run.workflow,
            tools_allowed=tools_of(run),
            ceiling=manifest["limits"].get("cost_usd"),
            path=path_of(run.id),
            calls=calls_of(run.id),
            spent=spent[Dimension.COST_USD].used if Dimension.COST_USD in spent else ZERO,
            facts=tuple(name for name, _ in state.facts_in_order()),
            status=run.status,
            terminal_code=run.terminal_code or None,
            reason=run.reason,
            waiting_for=min(state.gates, default=""),
        )
    )


def tools_of(run: Run) -> tuple[str, ...]:
    """The tools that the run's workflow names."""
    spec = orjson.loads(bytes(run.workflow_version.body))
    return tuple(spec.get("tools", ()))
