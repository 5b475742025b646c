"""Serialize rows for the API."""

from collections.abc import Mapping
from typing import Any

import orjson

from budgets.queries import get_usage_lines
from orchestrator.api.serializers import format_timestamp
from orchestrator.console.queries.plans import Plan
from orchestrator.core.guardrails.untrusted_facts import NOTICE, resting_on
from orchestrator.core.readmodel.run_plan import PlanStep
from orchestrator.policies.queries.policies import scope_held
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.progress import progress_of
from orchestrator.runs.queries.retry_lineage import retried_as
from orchestrator.runs.queries.runs import result_of, sentence_of, state_now
from orchestrator.spending.queries.business_cost import business_of
from orchestrator.spending.queries.estimates import rest_of
from traces.core.canonical import format_decimal
from traces.core.events.phases import Phase
from traces.models import Event


def build_run_links(run_id: object) -> dict[str, str]:
    """Build the links to a run's resources."""
    base = f"/api/v1/runs/{run_id}"
    return {
        "run": base, "events": f"{base}/events", "plan": f"{base}/plan", "result": f"{base}/result",
        "trace": f"{base}/trace",
    }  # fmt: skip


def serialize_run_row(run: Run) -> dict[str, Any]:
    """Serialize a run for a list."""
    return {
        "id": str(run.id),
        "workflow": run.workflow,
        "status": run.status,
        "node": run.position,
        "terminal_code": run.terminal_code or None,
        "scripted": run.scripted,
        "retry_of": retry_of(run),
        "created_at": format_timestamp(run.created_at),
        "finished_at": format_timestamp(run.finished_at),
    }


def retry_of(run: Run) -> dict[str, Any] | None:
    """Return the run and the record after which a retry began, None for a run that is no retry."""
    return None if run.retry_of_id is None else {"run": str(run.retry_of_id), "record": run.retry_record}


def serialize_run(run: Run) -> dict[str, Any]:
    """Serialize a run with its sentence, usage, limits and pins, and its result once there is one."""
    document = result_of(run)
    return {
        **serialize_run_row(run),
        "task": str(run.task_id),
        "retried_as": None if (again := retried_as(run.id)) is None else str(again),
        "workflow_version": run.workflow_version.version,
        "reason": run.reason,
        "sentence": sentence_of(run),
        "progress": progress_of(run).model_dump(mode="json"),
        "mode": run.mode,
        **serialize_run_amounts(run),
        "estimate": serialize_run_estimate(run),
        "business": serialize_business_cost(run),
        "plan": None,
        "pins": serialize_run_pins(run),
        "scope": serialize_run_scope(run),
        "tools": serialize_tool_restrictions(run),
        "waiting_for_model": serialize_model_wait(run),
        "result": document,
        **serialize_untrusted_facts(document),
        "started_at": format_timestamp(run.started_at),
        "links": build_run_links(run.id),
    }


def serialize_run_amounts(run: Run) -> dict[str, dict[str, str | None]]:
    """Serialize usage, limits and reserved amounts by dimension as decimal text.

    A limit of None is no limit.
    """
    lines = get_usage_lines(run.id)
    used: dict[str, str | None] = {name.value: format_decimal(line.used) for name, line in lines.items()}
    if "transitions" in used:
        # No effect reserves transitions: the number of records is the count.
        used["transitions"] = str(run.record_number)
    return {
        "usage": used,
        "limits": {
            n.value: None if line.limit is None else format_decimal(line.limit) for n, line in lines.items()
        },
        "reserved": {name.value: format_decimal(line.reserved) for name, line in lines.items()},
    }


def serialize_business_cost(run: Run) -> dict[str, Any]:
    """Serialize the run's cost to the operator with its parts, as decimal text."""
    found = business_of(run)
    parts = [
        {
            "what": part.name,
            "amount": format_decimal(part.amount),
            "rate_usd": format_decimal(part.rate),
            "usd": format_decimal(part.usd),
        }
        for part in found.parts
    ]
    return {"usd": format_decimal(found.usd), "parts": parts}


def serialize_run_estimate(run: Run) -> dict[str, dict[str, str | None]] | None:
    """Serialize the bounds of what the rest of the run takes, by dimension, as decimal text.

    An upper bound of None is unknown. Returns None for a run that has ended.
    """
    if run.finished_at is not None:
        return None
    return {
        name: {
            "lower": format_decimal(rest.lower),
            "upper": None if rest.upper is None else format_decimal(rest.upper),
        }
        for name, rest in rest_of(run, state_now(run.id)).items()
    }


def serialize_model_wait(run: Run) -> dict[str, Any] | None:
    """Serialize the run's wait for a model, None for a run that waits for none."""
    found = None if run.finished_at is not None else state_now(run.id).away
    if found is None:
        return None
    return {
        "profile": found.profile,
        "cause": found.cause,
        "by": found.by,
        "since": format_timestamp(found.since),
        "until": format_timestamp(found.until),
    }


def serialize_run_pins(run: Run) -> dict[str, str]:
    """Serialize the run's pins by digest."""
    manifest = ManifestRow.objects.get(id=run.id)
    body = orjson.loads(bytes(manifest.body))
    return {
        "manifest": manifest.digest,
        "pins": manifest.pins_digest,
        "graph": body["graph"],
        "goal": body["goal_digest"],
        "code_version": body["code_version"],
    }


def serialize_untrusted_facts(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """Serialize the untrusted facts behind an answer (M15). `notice` is empty if there are none."""
    found = resting_on(document)
    return {"untrusted": [one._asdict() for one in found], "notice": NOTICE if found else ""}


def serialize_run_scope(run: Run) -> dict[str, Any]:
    """Serialize the names in the run's task, its boundary's additions and its policy version (R-TOOL-17).

    The names and the policy version are null in runs created before these existed.
    """
    held = scope_held(run.id)
    return {
        "names": held.scope.model_dump(mode="json") if held.scope is not None else None,
        "granted": held.granted.model_dump(mode="json"),
        "policy_version": held.policy.version if held.policy is not None else None,
    }


def serialize_tool_restrictions(run: Run) -> dict[str, dict[str, str]]:
    """Serialize the tools with a restriction, each with the reason (R-TOOL-6, R-TOOL-13).

    These are the tools that a model was not offered, and those whose credential may end before the run does.
    """
    held = scope_held(run.id)
    return {"left_out": dict(held.left_out), "cautions": dict(held.cautions)}


def serialize_run_plan(found: Plan) -> dict[str, Any]:
    """Serialize the steps of a run and its criteria; an unknown or absent value is null."""
    return {
        "over": found.outlook.over,
        "steps": [_serialize_plan_step(one, found.rows.get(one.call)) for one in found.outlook.steps],
        "criteria": [
            {**one.model_dump(mode="json"), "node": one.node or None} for one in found.outlook.criteria
        ],
    }


def _serialize_plan_step(one: PlanStep, row: int | None) -> dict[str, Any]:
    wait = None
    if one.wait is not None:
        wait = {
            "what": one.wait.what,
            "request": one.wait.request or None,
            "until": format_timestamp(one.wait.until),
        }
    named = {name: getattr(one, name) or None for name in ("node", "call", "fact", "why", "became")}
    return {**one.model_dump(mode="json"), **named, "wait": wait, "event": row}


def serialize_trace_event(found: Event) -> dict[str, Any]:
    """Serialize one event of a trace."""
    payload = orjson.loads(bytes(found.body))
    payload.pop("kind", None)
    return {
        "seq": found.seq,
        "at": format_timestamp(found.at),
        "phase": found.phase,
        "phase_name": Phase(found.phase).label,
        "kind": found.kind,
        "actor": found.actor,
        "payload": payload,
        "hash": bytes(found.hash).hex(),
    }
