"""The changes of an ended run of which nobody knows whether they happened. Inside the tenant's context."""

from collections.abc import Iterable
from uuid import UUID

import orjson
from django.db.models import Q

from approvals.core.policy import Asked
from orchestrator.core.doubt import QUEUE as RECONCILIATION
from orchestrator.core.effects import CallTool, SentChange
from orchestrator.core.late_reconciliation import NOTHING_SENT, Doubt, list_doubts
from orchestrator.core.state import State
from orchestrator.core.terminal import TERMINAL_STATUSES, Status
from orchestrator.models import Intent, ManifestRow, Run
from orchestrator.queries.lines import retriers_of
from orchestrator.queries.runs import state_now
from orchestrator.runtime.recall import manifest_of, pins_of
from traces.core.sealed import holds_reference
from traces.models import Event
from traces.queries import payloads


def doubts_of(run: Run, state: State | None = None) -> tuple[Doubt, ...]:
    """The changes in doubt of an ended run, in the order in which they were asked for; none of a run that is
    under way."""
    if Status(run.status) not in TERMINAL_STATUSES:
        return ()
    state = state or state_now(run.id)
    changes = changes_of(run.id, state)
    return list_doubts(state, changes, late_effects(run.id)) if changes else ()


def changes_of(run_id: UUID, state: State) -> tuple[SentChange, ...]:
    """The newest requests of calls that change something: the run's own, and those of its line that are open
    in its state, under the calls that asked for them last."""
    known = {one.effect: one.call for one in state.opened.values()}
    rows = Intent.objects.filter(Q(run_id=run_id) | Q(effect__in=list(known)), mutating=True)
    newest: dict[str, SentChange] = {}
    for effect in intended(rows.order_by("id").values_list("body", flat=True)):
        change = SentChange(
            effect=effect.id, call=known.get(effect.id, effect.call), tool=effect.tool, key=effect.key,
            arguments=effect.arguments, argument_digest=effect.argument_digest,
        )  # fmt: skip
        newest[change.call] = change
    return tuple(newest.values())


def intended(bodies: Iterable[bytes]) -> list[CallTool]:
    """The tool calls of stored intents."""
    return [CallTool.model_validate_json(bytes(body)) for body in bodies]


def late_effects(run_id: UUID) -> frozenset[str]:
    """The effects of which the run heard when it had gone on or ended, and that may have been sent."""
    said = Event.objects.filter(run_id=run_id, kind="late_outcome").values_list("body", flat=True)
    told = [orjson.loads(bytes(body)) for body in said]
    return frozenset(one["effect"] for one in told if one["status"] not in NOTHING_SENT)


def is_looked_up_by(run: Run, tool: str) -> bool:
    """True if the pinned version of a tool names a look-up."""
    digest = ManifestRow.objects.values_list("pins_digest", flat=True).get(id=run.id)
    spec = pins_of(run.tenant_id, digest).by_name.get(tool)
    return spec is not None and spec.lookup


def asked_about(run: Run, change: SentChange) -> Asked:
    """What the rule of who may decide looks at in a change in doubt: what it looks at while the run is under
    way."""
    row = ManifestRow.objects.get(id=run.id)
    manifest = manifest_of(bytes(row.body), pins_of(row.tenant_id, row.pins_digest))
    spec = manifest.pins.by_name.get(change.tool)
    retriers = retriers_of(run.id)
    held = payloads(run.id, (change.arguments,)).get(change.arguments, b"")
    return Asked(
        kind="reconciliation", queue=RECONCILIATION, risk=spec.risk.value if spec is not None else "",
        amount=None, has_amount=False, submitter=str(manifest.principal),
        submitter_owner=str(manifest.owner), retriers=tuple(str(one.principal) for one in retriers),
        retrier_owners=tuple(str(one.owner) for one in retriers), sealed=holds_reference(held.decode()),
    )  # fmt: skip
