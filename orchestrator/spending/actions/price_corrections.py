"""Correct a wrong price: book a ledger correction for every call charged at it (R-BUDGET-15).

The right price is the version now in force. Each run has transactions of its own: the run is notified first,
then the correction is booked in the ring's lock order, the run's row before its lines. A run under way
charges later calls, and a call in flight, at the right price from its next commit on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from budgets.actions import book_correction
from budgets.core.amounts import ZERO
from budgets.core.errors import PriceUnknown
from budgets.price_lookup import price_for
from orchestrator.core.accounting.effect_pricing import price_of_version
from orchestrator.core.admission.errors import RunNotFound
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.core.common.tool_price import ToolPrice
from orchestrator.runs.actions.run_signals import leave_signal
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.state_loader import pins_of
from orchestrator.spending.queries.mispriced_calls import (
    MispricedCall,
    RightPrice,
    WrongPrice,
    list_mispriced_calls,
    runs_charged_at,
    told_of,
)
from orchestrator.tools.queries.tools import tool_now
from tenancy.actions import write_audit_entry
from tenancy.core.errors import InvalidInput
from tenancy.db.clock import database_now
from tenancy.db.tenant_context import tenant_transaction
from traces.core.canonical import format_decimal

AT_ONCE: Final = 500
NAMED: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRun:
    """The effect of a correction on one run: the number of calls and the difference in US$.

    `later`: calls that the run has yet to make change too.
    """

    run: UUID
    calls: int
    delta: Decimal
    later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The changes that a correction makes, or has made if `applied`.

    `beyond` is the run after which to continue; None if there are no further runs.
    """

    right: RightPrice
    runs: Sequence[CorrectedRun]
    applied: bool
    beyond: UUID | None = None

    @property
    def calls(self) -> int:
        """Return the number of corrected calls."""
        return sum(one.calls for one in self.runs)

    @property
    def under_way(self) -> int:
        """Return how many runs have calls yet to make."""
        return sum(one.later for one in self.runs)

    @property
    def delta(self) -> Decimal:
        """Return the total difference in US$, negative if too much was booked."""
        return sum((one.delta for one in self.runs), ZERO)


def right_for(tenant_id: UUID, wrong: WrongPrice) -> RightPrice:
    """Return the price in force in place of the wrong one. Call in the tenant's context.

    Raises: NotFound for an unknown tool, PriceUnknown, InvalidInput if the wrong price is the one in force.
    """
    if wrong.tool:
        spec = tool_now(tenant_id, wrong.tool).spec
        if spec.price_usd is None:
            raise PriceUnknown(provider="the tools", model=spec.name)
        right = RightPrice(version=price_of_version(spec), a_call=spec.price_usd)
    else:
        price = price_for(tenant_id, wrong.provider, wrong.model, database_now())
        right = RightPrice(version=price.version, model=price)
    if right.version == wrong.version:
        detail = "This is the price in force: declare the right one first."
        raise InvalidInput(errors=[{"pointer": "/version", "code": "in-force", "detail": detail}])
    return right


def preview_price_correction(tenant_id: UUID, wrong: WrongPrice, *, after: UUID | None = None) -> Correction:
    """Preview the correction of a price in at most `AT_ONCE` runs after a given one. Changes nothing.

    Raises: as `right_for`.
    """
    with tenant_transaction(tenant_id):
        right = right_for(tenant_id, wrong)
        runs, beyond = _list_affected_runs(tenant_id, wrong, after)
        found = [
            _summarize_corrected_run(
                run,
                list_mispriced_calls(tenant_id, run, wrong, right),
                later=_find_future_price_change(run, wrong, right) is not None,
            )
            for run in runs
        ]
    return Correction(
        right=right, runs=[one for one in found if _has_correction(one)], applied=False, beyond=beyond
    )


def apply_price_correction(
    tenant_id: UUID, wrong: WrongPrice, *, by: UUID | None, reason: str, after: UUID | None = None
) -> Correction:
    """Correct at most `AT_ONCE` runs charged at the wrong price, each run completely and audited.

    Outermost verb: owns the transactions. A repeated call finds nothing left to do.

    Raises: as `right_for`.
    """
    with tenant_transaction(tenant_id):
        right = right_for(tenant_id, wrong)
        runs, beyond = _list_affected_runs(tenant_id, wrong, after)
    done = [_reprice_run(tenant_id, run, wrong, right, by=by, reason=reason) for run in runs]
    return Correction(
        right=right, runs=[one for one in done if _has_correction(one)], applied=True, beyond=beyond
    )


def _list_affected_runs(
    tenant_id: UUID, wrong: WrongPrice, after: UUID | None
) -> tuple[Sequence[UUID], UUID | None]:
    runs = [run for run in runs_charged_at(tenant_id, wrong) if after is None or run > after]
    return runs[:AT_ONCE], runs[AT_ONCE - 1] if len(runs) > AT_ONCE else None


def _summarize_corrected_run(run: UUID, calls: Sequence[MispricedCall], *, later: bool) -> CorrectedRun:
    return CorrectedRun(
        run=run, calls=len(calls), delta=sum((call.delta for call in calls), ZERO), later=later
    )


def _has_correction(found: CorrectedRun) -> bool:
    return bool(found.calls) or found.later


def _find_future_price_change(run_id: UUID, wrong: WrongPrice, right: RightPrice) -> dict[str, Any] | None:
    """Build the notice to a run under way about the price of its later calls.

    None if the run has ended, was already notified, or uses nothing at that price.
    """
    run, pinned = Run.objects.get(id=run_id), ManifestRow.objects.values_list("pins_digest", flat=True)
    if Status(run.status) in TERMINAL_STATUSES:
        return None
    last = told_of(run_id, wrong).order_by("-id").first()
    if last is not None and last.payload["price_version"] == right.version:
        return None
    names = sorted(wrong.names(run_id, pins_of(run.tenant_id, pinned.get(id=run_id))))
    if not names:
        return None
    a_call = ToolPrice(usd=right.a_call, version=right.version).model_dump(mode="json")
    model = None if right.model is None else right.model.model_dump(mode="json")
    return {
        "subject": wrong.subject, "was": wrong.version, "price_version": right.version,
        "models": {} if wrong.tool else dict.fromkeys(names, model),
        "tools": dict.fromkeys(names, a_call) if wrong.tool else {},
    }  # fmt: skip


def _send_future_price_change(
    tenant_id: UUID, run_id: UUID, wrong: WrongPrice, right: RightPrice, *, by: UUID | None, reason: str
) -> bool:
    """Notify a run under way of the price of its later calls; return whether there was anything to send.

    In a transaction of its own and before the run's row is locked: a commit that waits for the row reads
    signals as of when it began to wait.
    """
    with tenant_transaction(tenant_id):
        later = _find_future_price_change(run_id, wrong, right)
        if later is not None:
            said = {
                **later,
                "reason": reason[:300],
                "more": bool(list_mispriced_calls(tenant_id, run_id, wrong, right)),
            }
            leave_signal(tenant_id, run_id, "repriced", said, by)
        return later is not None


def _reprice_run(
    tenant_id: UUID, run_id: UUID, wrong: WrongPrice, right: RightPrice, *, by: UUID | None, reason: str
) -> CorrectedRun:
    later = _send_future_price_change(tenant_id, run_id, wrong, right, by=by, reason=reason)
    with tenant_transaction(tenant_id):
        # NO KEY: others insert rows that refer to the run meanwhile.
        run = Run.objects.select_for_update(no_key=True).filter(id=run_id).first()
        if run is None:
            raise RunNotFound
        calls, at = list_mispriced_calls(tenant_id, run_id, wrong, right), database_now()
        for place, call in enumerate(calls, start=1):
            book_correction(
                tenant_id, run_id, effect_id=call.effect, delta=call.delta, price_version=right.version, at=at
            )
            if Status(run.status) not in TERMINAL_STATUSES:
                _send_cost_correction(
                    tenant_id, run_id, call, right, by=by, reason=reason, more=place < len(calls)
                )
        told = _summarize_corrected_run(run_id, calls, later=later)
        if _has_correction(told):
            write_audit_entry(
                tenant_id, by, verb="correct_price", object=f"run:{run_id}",
                before={"price": wrong.version},
                after={
                    "price": right.version, "calls": told.calls, "delta_usd": format_decimal(told.delta),
                    "later_calls": told.later,
                },
                reason=reason,
            )  # fmt: skip
        return told


def _send_cost_correction(
    tenant_id: UUID,
    run_id: UUID,
    call: MispricedCall,
    right: RightPrice,
    *,
    by: UUID | None,
    reason: str,
    more: bool,
) -> None:
    """Send the correction to the run, whose own count follows with its next commit."""
    said = {
        "effect": call.effect, "delta": format_decimal(call.delta), "price_version": right.version,
        "reason": reason[:300], "more": more,
    }  # fmt: skip
    leave_signal(tenant_id, run_id, "corrected", said, by)
