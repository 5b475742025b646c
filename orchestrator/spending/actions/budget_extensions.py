"""Decide which amounts may be granted to a run that asks for more budget (R-BUDGET-7)."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from approvals.core.packet import BudgetLine, BudgetPacket, read_packet
from approvals.ports import EditJudgement
from budgets.actions import newest_ceilings
from budgets.core.dimension import Dimension
from orchestrator.core.compiler.compiler import transition_bound
from orchestrator.core.domain.manifest import Manifest
from orchestrator.core.domain.tool_spec import Risk
from orchestrator.runs.models.run import ManifestRow, Run
from orchestrator.runs.queries.runs import state_now
from orchestrator.runs.queries.state_loader import graph_of, manifest_of, pins_of
from tenancy.db.tenant_context import raw_cursor
from traces.core.canonical import encode_canonical, format_decimal

COST, TRANSITIONS = Dimension.COST_USD.value, Dimension.TRANSITIONS.value
# A larger amount is taken for a typing error.
MOST = Decimal(10) ** 12
FINEST = Decimal("0.000001")


# Granting these dimensions takes at least the authority to decide on a tool call that changes something.
MUTATING = (Dimension.SIDE_EFFECTS.value, Dimension.GRANTED_SIDE_EFFECTS.value)


class GrantRefused(Exception):
    """The amounts cannot be granted, why, and for which dimension ("": for none of them alone)."""

    def __init__(self, sentence: str, dimension: str = "") -> None:
        super().__init__(sentence)
        self.dimension = dimension


def judge_extension(
    tenant_id: UUID, run_id: UUID, packet: bytes, amounts: Mapping[str, Any]
) -> EditJudgement:
    """Judge an extension, for approvals' port. Call in the tenant's context.

    An extension adds amounts to the run's own limits, enough for the refused effect. A forbidden dimension
    cannot be raised. Cost must stay within the tenant's ceiling per run. Any other dimension grows by at most
    what the boundary gave the run. The reviewer's authority must cover the cost of all grants to this run
    together, and a risk class that changes something if side effects are granted. The bound on transitions
    grows with the amounts. The ceilings per day and month apply unchanged.
    """
    try:
        asked = read_packet(packet)
        if not isinstance(asked, BudgetPacket):
            raise GrantRefused("this request asks for no budget")
        lines = {line.dimension: line for line in asked.budget}
        amounts_read = {name: _parse_granted_amount(lines, name, value) for name, value in amounts.items()}
        granted = {name: amount for name, amount in amounts_read.items() if amount}
        manifest = _load_manifest(tenant_id, run_id)
        for name, amount in granted.items():
            _in_measure(manifest, lines[name], amount)
        _check_amount_sufficient(lines[asked.refused], granted)
        _within_ceiling(tenant_id, lines.get(COST), granted)
    except GrantRefused as refused:
        return EditJudgement(None, refusal=str(refused), field=refused.dimension)
    risk = Risk.LOCAL_WRITE.value if any(name in granted for name in MUTATING) else ""
    cost = lines[COST].limit + granted[COST] - manifest.limits[COST] if COST in granted else None
    granted = _with_transitions(run_id, granted)
    body = encode_canonical({name: format_decimal(amount) for name, amount in sorted(granted.items())})
    return EditJudgement(body, amount=cost, risk=risk)


def _load_manifest(tenant_id: UUID, run_id: UUID) -> Manifest:
    body, pinned = ManifestRow.objects.values_list("body", "pins_digest").get(id=run_id)
    return manifest_of(bytes(body), pins_of(tenant_id, pinned))


def _in_measure(manifest: Manifest, line: BudgetLine, amount: Decimal) -> None:
    """Check that an amount is of no forbidden dimension and within what the boundary gave (R-BUDGET-16).

    Cost has limits of its own.

    Raises: Refused.
    """
    name = line.dimension
    given = manifest.pins.boundary.budget.get(name)
    given = manifest.limits.get(name, line.limit) if given is None else given
    if not line.limit or not given:
        raise GrantRefused(f"{name} is forbidden to this run, its limit is 0: it cannot be given", name)
    if name != COST and amount > given:
        most = f"{format_decimal(given)} {line.unit}"
        raise GrantRefused(f"{name}: at most as much again as the boundary gave the run, {most}", name)


def _parse_granted_amount(lines: Mapping[str, BudgetLine], name: str, value: Any) -> Decimal:
    if name not in lines:
        raise GrantRefused(f"{name[:60]} is no limit that can be raised here")
    try:
        amount = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0 or amount > MOST:
        raise GrantRefused(f"{name}: give a number from 0 to {format_decimal(MOST)}", name)
    if name in (COST, Dimension.WALL_CLOCK_SECONDS.value):
        if amount != amount.quantize(FINEST):
            raise GrantRefused(f"{name}: at most six decimal places", name)
    elif amount != amount.to_integral_value():
        raise GrantRefused(f"{name} is counted in whole {lines[name].unit}", name)
    return amount


def _check_amount_sufficient(line: BudgetLine, granted: Mapping[str, Decimal]) -> None:
    """Check that a grant covers what the next effect lacks.

    A smaller grant would freeze the run again at once.

    Raises: Refused.
    """
    lacking = (line.needed or Decimal(0)) - line.left
    given = granted.get(line.dimension, Decimal(0))
    if given <= 0 or given < lacking:
        least = format_decimal(max(lacking, FINEST))
        raise GrantRefused(f"at least {least} more {line.dimension} is needed to go on", line.dimension)


def _within_ceiling(tenant_id: UUID, line: BudgetLine | None, granted: Mapping[str, Decimal]) -> None:
    more = granted.get(COST)
    ceiling = newest_ceilings(tenant_id, raw_cursor()).per_run_usd
    if not more or line is None or ceiling is None:
        return
    if line.limit + more > ceiling:
        most = max(Decimal(0), ceiling - line.limit)
        raise GrantRefused(
            f"the tenant's ceiling is {format_decimal(ceiling)} US$ a run: at most {format_decimal(most)} "
            f"more cost_usd",
            COST,
        )


def _with_transitions(run_id: UUID, granted: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Return the grant with the bound on transitions that admission would derive from the larger limits."""
    run = Run.objects.get(id=run_id)
    limits = state_now(run_id).limits
    larger = {name: limit + granted.get(name, Decimal(0)) for name, limit in limits.items()}
    bound = Decimal(transition_bound(graph_of(run.tenant_id, run.workflow_version_id), larger))
    more = max(bound - limits.get(TRANSITIONS, bound), granted.get(TRANSITIONS, Decimal(0)))
    return {**granted, TRANSITIONS: more} if more > 0 else dict(granted)
