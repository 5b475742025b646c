"""Rows as the API shows them."""

from collections.abc import Mapping
from typing import Any

import orjson

from budgets.queries import usage
from orchestrator.api.serializers import stamp
from orchestrator.core.guardrails.untrusted_facts import NOTICE, resting_on
from orchestrator.core.readmodel.run_plan import PlanStep
from orchestrator.models import ManifestRow, Run
from orchestrator.queries.business_cost import business_of
from orchestrator.queries.estimates import rest_of
from orchestrator.queries.plans import Plan
from orchestrator.queries.policies import scope_held
from orchestrator.queries.progress import progress_of
from orchestrator.queries.retry_lineage import retried_as
from orchestrator.queries.runs import result_of, sentence_of, state_now
from traces.core.canonical import plain
from traces.core.events.phases import Phase
from traces.models import Event


def links(run_id: object) -> dict[str, str]:
    """Where more of a run is."""
    base = f"/api/v1/runs/{run_id}"
    return {
        "run": base, "events": f"{base}/events", "plan": f"{base}/plan", "result": f"{base}/result",
        "trace": f"{base}/trace",
    }  # fmt: skip


def row(run: Run) -> dict[str, Any]:
    """A run in a list."""
    return {
        "id": str(run.id),
        "workflow": run.workflow,
        "status": run.status,
        "node": run.position,
        "terminal_code": run.terminal_code or None,
        "scripted": run.scripted,
        "retry_of": retry_of(run),
        "created_at": stamp(run.created_at),
        "finished_at": stamp(run.finished_at),
    }


def retry_of(run: Run) -> dict[str, Any] | None:
    """After which record of which run it began; None for no retry."""
    return None if run.retry_of_id is None else {"run": str(run.retry_of_id), "record": run.retry_record}


def whole(run: Run) -> dict[str, Any]:
    """A run with its sentence, what it spent of what it may spend, its pins, and its result once it has
    one."""
    document = result_of(run)
    return {
        **row(run),
        "task": str(run.task_id),
        "retried_as": None if (again := retried_as(run.id)) is None else str(again),
        "workflow_version": run.workflow_version.version,
        "reason": run.reason,
        "sentence": sentence_of(run),
        "progress": progress_of(run).model_dump(mode="json"),
        "mode": run.mode,
        **amounts(run),
        "estimate": estimate(run),
        "business": business(run),
        "plan": None,
        "pins": pins(run),
        "scope": scope(run),
        "tools": tools(run),
        "waiting_for_model": away(run),
        "result": document,
        **resting(document),
        "started_at": stamp(run.started_at),
        "links": links(run.id),
    }


def amounts(run: Run) -> dict[str, dict[str, str | None]]:
    """usage, limits and reserved, each by dimension, as decimal text; a limit that is None is none."""
    lines = usage(run.id)
    used: dict[str, str | None] = {name.value: plain(line.used) for name, line in lines.items()}
    if "transitions" in used:
        # No effect reserves them: the records count themselves.
        used["transitions"] = str(run.record_number)
    return {
        "usage": used,
        "limits": {n.value: None if line.limit is None else plain(line.limit) for n, line in lines.items()},
        "reserved": {name.value: plain(line.reserved) for name, line in lines.items()},
    }


def business(run: Run) -> dict[str, Any]:
    """What the run cost the house, with its parts, as decimal text."""
    found = business_of(run)
    parts = [
        {
            "what": part.name,
            "amount": plain(part.amount),
            "rate_usd": plain(part.rate),
            "usd": plain(part.usd),
        }
        for part in found.parts
    ]
    return {"usd": plain(found.usd), "parts": parts}


def estimate(run: Run) -> dict[str, dict[str, str | None]] | None:
    """What the rest of the run takes at the least and at the most, by dimension, as decimal text; an upper
    bound that is None is unknown. None for a run that has ended."""
    if run.finished_at is not None:
        return None
    return {
        name: {"lower": plain(rest.lower), "upper": None if rest.upper is None else plain(rest.upper)}
        for name, rest in rest_of(run, state_now(run.id)).items()
    }


def away(run: Run) -> dict[str, Any] | None:
    """The model that the run waits for; None for a run that waits for none."""
    found = None if run.finished_at is not None else state_now(run.id).away
    if found is None:
        return None
    return {
        "profile": found.profile, "cause": found.cause, "by": found.by, "since": stamp(found.since),
        "until": stamp(found.until),
    }  # fmt: skip


def pins(run: Run) -> dict[str, str]:
    """What the run is pinned to, by digest."""
    manifest = ManifestRow.objects.get(id=run.id)
    body = orjson.loads(bytes(manifest.body))
    return {
        "manifest": manifest.digest,
        "pins": manifest.pins_digest,
        "graph": body["graph"],
        "goal": body["goal_digest"],
        "code_version": body["code_version"],
    }


def resting(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """What an answer rests on that nobody vouches for, beside it (M15); `notice` is empty for none."""
    found = resting_on(document)
    return {"untrusted": [one._asdict() for one in found], "notice": NOTICE if found else ""}


def scope(run: Run) -> dict[str, Any]:
    """What the run's task names, what its boundary adds, and the version of the policy it is pinned to
    (R-TOOL-17). Both are null in runs from before there were any."""
    held = scope_held(run.id)
    return {
        "names": held.scope.model_dump(mode="json") if held.scope is not None else None,
        "granted": held.granted.model_dump(mode="json"),
        "policy_version": held.policy.version if held.policy is not None else None,
    }


def tools(run: Run) -> dict[str, dict[str, str]]:
    """The tools that a model was not offered, and those whose credential may end before the run does, each
    with why (R-TOOL-6, R-TOOL-13)."""
    held = scope_held(run.id)
    return {"left_out": dict(held.left_out), "cautions": dict(held.cautions)}


def plan(found: Plan) -> dict[str, Any]:
    """The steps of a run and its criteria; what is not known, or not there, is null."""
    return {
        "over": found.outlook.over,
        "steps": [_step(one, found.rows.get(one.call)) for one in found.outlook.steps],
        "criteria": [
            {**one.model_dump(mode="json"), "node": one.node or None} for one in found.outlook.criteria
        ],
    }


def _step(one: PlanStep, row: int | None) -> dict[str, Any]:
    wait = None
    if one.wait is not None:
        wait = {"what": one.wait.what, "request": one.wait.request or None, "until": stamp(one.wait.until)}
    named = {name: getattr(one, name) or None for name in ("node", "call", "fact", "why", "became")}
    return {**one.model_dump(mode="json"), **named, "wait": wait, "event": row}


def event(found: Event) -> dict[str, Any]:
    """One event of a trace."""
    payload = orjson.loads(bytes(found.body))
    payload.pop("kind", None)
    return {
        "seq": found.seq,
        "at": stamp(found.at),
        "phase": found.phase,
        "phase_name": Phase(found.phase).label,
        "kind": found.kind,
        "actor": found.actor,
        "payload": payload,
        "hash": bytes(found.hash).hex(),
    }
