"""The in-doubt changes of an ended run: it is unknown whether they happened. Call it inside the tenant's
context.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
from django.db.models import Q

from approvals.core.policy import RequestFacts
from approvals.models import Request
from orchestrator.core.approval.reconciliation import QUEUE as RECONCILIATION
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.domain.effects import CallTool, SentChange
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.engine.late_reconciliation import NOTHING_SENT, DoubtfulChange, list_doubts
from orchestrator.runs.models.run import Intent, ManifestRow, Run
from orchestrator.runs.queries.pending_signals import is_asked_of_effect
from orchestrator.runs.queries.retry_lineage import retried_as, retriers_of
from orchestrator.runs.queries.runs import state_now
from orchestrator.runs.queries.state_loader import manifest_of, pins_of
from traces.core.sealed_references import holds_reference
from traces.models import Event
from traces.queries import load_payloads

LATE_KINDS: Final = ("reconciled", "look_up")


def doubts_of(run: Run, state: RunState | None = None) -> tuple[DoubtfulChange, ...]:
    """Return the in-doubt changes of an ended run, in the order of their requests.

    The result is empty for a run that has not ended.
    """
    if Status(run.status) not in TERMINAL_STATUSES:
        return ()
    state = state or state_now(run.id)
    changes = changes_of(run.id, state)
    found = list_doubts(state, changes, late_effects(run.id)) if changes else ()
    # Changes that are merely open went along with the retry, if there is one.
    return found if retried_as(run.id) is None else tuple(one for one in found if one.blocks)


def changes_of(run_id: UUID, state: RunState) -> tuple[SentChange, ...]:
    """Return the newest request of each mutating call.

    These are the run's own calls, and those of its line of retries that are open in its state, under the
    calls that requested them last.
    """
    known = {one.effect: one.call for one in state.opened.values()}
    rows = Intent.objects.filter(Q(run_id=run_id) | Q(effect__in=list(known)), mutating=True)
    newest: dict[str, SentChange] = {}
    attempts: dict[str, list[str]] = {}
    for effect in parse_call_intents(rows.order_by("id").values_list("body", flat=True)):
        call = known.get(effect.id, effect.call)
        attempts.setdefault(call, []).append(effect.id)
        newest[call] = SentChange(
            effect=effect.id, call=call, tool=effect.tool, key=effect.key, arguments=effect.arguments,
            argument_digest=effect.argument_digest, attempts=tuple(dict.fromkeys(attempts[call])),
        )  # fmt: skip
    return tuple(newest.values())


def parse_call_intents(bodies: Iterable[bytes | memoryview]) -> list[CallTool]:
    """Parse the tool calls of stored intents."""
    return [CallTool.model_validate_json(bytes(body)) for body in bodies]


def late_effects(run_id: UUID) -> frozenset[str]:
    """Return the effects whose outcome arrived late, and that may have been sent.

    Late means after the run had moved on or ended.
    """
    said = Event.objects.filter(run_id=run_id, kind="late_outcome").values_list("body", flat=True)
    told = [orjson.loads(bytes(body)) for body in said]
    return frozenset(one["effect"] for one in told if one["status"] not in NOTHING_SENT)


def is_looked_up_by(run: Run, tool: str) -> bool:
    """True if the pinned version of a tool names a look-up."""
    digest = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run.id)
    spec = pins_of(run.tenant_id, digest).by_name.get(tool)
    return spec is not None and spec.lookup


def asked_about(run: Run, change: SentChange) -> RequestFacts:
    """Return the input of the decision rule for a change in doubt, the same as while the run is live."""
    row = ManifestRow.objects.get(id=run.id)
    manifest = manifest_of(bytes(row.body), pins_of(row.tenant_id, row.pins_digest))
    spec = manifest.pins.by_name.get(change.tool)
    retriers = retriers_of(run.id)
    held = load_payloads(run.id, (change.arguments,)).get(change.arguments, b"")
    return RequestFacts(
        kind="reconciliation", queue=RECONCILIATION, risk=spec.risk.value if spec is not None else "",
        amount=None, has_amount=False, submitter=str(manifest.principal),
        submitter_owner=str(manifest.owner), retriers=tuple(str(one.principal) for one in retriers),
        retrier_owners=tuple(str(one.owner) for one in retriers), sealed=holds_reference(held.decode()),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDoubt:
    """A change in doubt as a page and the API show it.

    `arguments` is None where they were erased. `request` is the request that people got while the run was
    live, None without one.
    """

    doubt: DoubtfulChange
    arguments: Any
    can_look_up: bool
    being_recorded: bool
    request: UUID | None


def shown_doubts(run: Run) -> list[ShownDoubt]:
    """Return the changes in doubt of an ended run, with the data needed to reconcile them."""
    found = doubts_of(run)
    if not found:
        return []
    bodies = load_payloads(run.id, [one.change.arguments for one in found])
    asked = Request.objects.filter(run_id=run.id, kind="reconciliation").order_by("created_at")
    requests = dict(asked.values_list("call_id", "id"))
    return [
        ShownDoubt(
            doubt=one,
            arguments=_parse_json_body(bodies.get(one.change.arguments)),
            can_look_up=is_looked_up_by(run, one.change.tool),
            being_recorded=any(is_asked_of_effect(run.id, kind, one.change.effect) for kind in LATE_KINDS),
            request=requests.get(one.change.call),
        )
        for one in found
    ]


def _parse_json_body(body: bytes | None) -> Any:
    try:
        return None if body is None else orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
