"""How many distinct people must agree, by the amount at stake (R-APPR-5)."""

from decimal import Decimal, InvalidOperation
from typing import Any

from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.workflow.goal_inputs import MISSING, resolve_pointer


def amount_of(spec: ToolSpec, arguments: Any) -> Decimal | None:
    """The amount a call moves, or None where the tool moves none or it cannot be read."""
    if spec.amount is None:
        return None
    value = resolve_pointer(arguments, spec.amount)
    try:
        amount = Decimal(str(value)) if value is not MISSING else None
    except InvalidOperation:
        return None
    return abs(amount) if amount is not None and amount.is_finite() else None


def count_required_approvers(spec: ToolSpec, amount: Decimal | None, arguments: Any) -> int:
    """How many people; an amount that cannot be read, or that no step's currency is made for, asks for the
    most."""
    currency = resolve_pointer(arguments, spec.currency) if spec.currency is not None else None
    return approvers_of(spec, amount, currency)


def approvers_of(spec: ToolSpec, amount: Decimal | None, currency: Any) -> int:
    """How many people for an amount in a currency."""
    most = max(step.approvers for step in spec.quorum)
    if spec.amount is None:
        return spec.quorum[0].approvers
    if amount is None:
        return most
    fitting = (step for step in spec.quorum if step.currency is None or step.currency == currency)
    return next((step.approvers for step in fitting if step.up_to is None or amount <= step.up_to), most)
