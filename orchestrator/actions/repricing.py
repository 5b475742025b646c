"""A wrong price is made good: a new version, and a ledger correction for every call charged at the old one
(R-BUDGET-15). Each run in a transaction of its own, in the ring's order of locks: its row, then its lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

from budgets.actions import book_correction
from budgets.core.errors import PriceUnknown
from budgets.core.vector import ZERO
from budgets.prices import price_for
from orchestrator.actions.signalling import leave_signal
from orchestrator.core.errors import RunNotFound
from orchestrator.core.pricing import price_of_version
from orchestrator.core.terminal import TERMINAL_STATUSES, Status
from orchestrator.models import Run
from orchestrator.queries.charged import Charged, Right, Wrong, charged, runs_pinned_to
from orchestrator.queries.tools import tool_now
from tenancy.actions import audit
from tenancy.clock import database_now
from tenancy.context import tenant
from tenancy.core.errors import InvalidInput
from traces.core.canonical import plain

AT_ONCE: Final = 500
NAMED: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """What a correction changes in one run: how many calls, and by how many US$."""

    run: UUID
    calls: int
    delta: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a correction changes, or changed where it was `applied`. `beyond` is the run to go on after; None:
    there is no further one."""

    right: Right
    runs: Sequence[Corrected]
    applied: bool
    beyond: UUID | None = None

    @property
    def calls(self) -> int:
        """How many calls."""
        return sum(one.calls for one in self.runs)

    @property
    def delta(self) -> Decimal:
        """US$ in all; less than zero where too much was booked."""
        return sum((one.delta for one in self.runs), ZERO)


def right_for(tenant_id: UUID, wrong: Wrong) -> Right:
    """What is in force now in place of the wrong price. Inside the tenant's context. Raises NotFound for a
    tool that is none, PriceUnknown, InvalidInput where the wrong price is the one in force."""
    if wrong.tool:
        spec = tool_now(tenant_id, wrong.tool).spec
        if spec.price_usd is None:
            raise PriceUnknown(provider="the tools", model=spec.name)
        right = Right(version=price_of_version(spec), a_call=spec.price_usd)
    else:
        price = price_for(tenant_id, wrong.provider, wrong.model, database_now())
        right = Right(version=price.version, model=price)
    if right.version == wrong.version:
        detail = "This is the price in force: declare the right one first."
        raise InvalidInput(errors=[{"pointer": "/version", "code": "in-force", "detail": detail}])
    return right


def preview(tenant_id: UUID, wrong: Wrong, *, after: UUID | None = None) -> Correction:
    """What correcting a price would change, in at most `AT_ONCE` runs after one; changes nothing. Raises what
    `right_for` raises."""
    with tenant(tenant_id):
        right = right_for(tenant_id, wrong)
        runs, beyond = _stretch(wrong, after)
        found = [(run, charged(tenant_id, run, wrong, right)) for run in runs]
    return Correction(
        right=right, runs=[_told(run, calls) for run, calls in found if calls], applied=False, beyond=beyond
    )


def reprice(
    tenant_id: UUID, wrong: Wrong, *, by: UUID | None, reason: str, after: UUID | None = None
) -> Correction:
    """Correct at most `AT_ONCE` runs that were charged at the wrong price, each whole and audited. Outermost
    verb: owns the transactions. Done again it finds nothing left to do. Raises what `right_for` raises."""
    with tenant(tenant_id):
        right = right_for(tenant_id, wrong)
        runs, beyond = _stretch(wrong, after)
    done = [_reprice_run(tenant_id, run, wrong, right, by=by, reason=reason) for run in runs]
    return Correction(right=right, runs=[one for one in done if one.calls], applied=True, beyond=beyond)


def _stretch(wrong: Wrong, after: UUID | None) -> tuple[Sequence[UUID], UUID | None]:
    runs = [run for run in runs_pinned_to(wrong) if after is None or run > after]
    return runs[:AT_ONCE], runs[AT_ONCE - 1] if len(runs) > AT_ONCE else None


def _told(run: UUID, calls: Sequence[Charged]) -> Corrected:
    return Corrected(run=run, calls=len(calls), delta=sum((call.delta for call in calls), ZERO))


def _reprice_run(
    tenant_id: UUID, run_id: UUID, wrong: Wrong, right: Right, *, by: UUID | None, reason: str
) -> Corrected:
    with tenant(tenant_id):
        # No key: rows that refer to the run are left by others meanwhile.
        run = Run.objects.select_for_update(no_key=True).filter(id=run_id).first()
        if run is None:
            raise RunNotFound
        calls = charged(tenant_id, run_id, wrong, right)
        at = database_now()
        for call in calls:
            book_correction(
                tenant_id, run_id, effect_id=call.effect, delta=call.delta, price_version=right.version, at=at
            )
            if Status(run.status) not in TERMINAL_STATUSES:
                _tell(tenant_id, run_id, call, right, by=by, reason=reason)
        told = _told(run_id, calls)
        if calls:
            audit(
                tenant_id, by, verb="correct_price", object=f"run:{run_id}",
                before={"price": wrong.version},
                after={"price": right.version, "calls": told.calls, "delta_usd": plain(told.delta)},
                reason=reason,
            )  # fmt: skip
        return told


def _tell(
    tenant_id: UUID, run_id: UUID, call: Charged, right: Right, *, by: UUID | None, reason: str
) -> None:
    """The run's own count follows with its next commit."""
    said = {
        "effect": call.effect, "delta": plain(call.delta), "price_version": right.version,
        "reason": reason[:300],
    }  # fmt: skip
    leave_signal(tenant_id, run_id, "corrected", said, by)
