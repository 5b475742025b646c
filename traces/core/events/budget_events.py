"""What a trace says of a run's budget beside reservations and settlements."""

from decimal import Decimal
from typing import Literal

from traces.core.events.event_base import TraceEventBody


class CostCorrected(TraceEventBody):
    """What an effect had cost was made good in the ledger under another price (R-BUDGET-15). `delta`: US$,
    less than zero where it had been too dear."""

    kind: Literal["cost_corrected"] = "cost_corrected"
    effect: str
    delta: Decimal
    price_version: str
    by: str
    reason: str = ""


class PriceCorrected(TraceEventBody):
    """What the run asks for from now on is charged at another price than it is pinned to, which was wrong
    (R-BUDGET-15). `subject`: the model with its provider, or the tool; `was` the wrong version."""

    kind: Literal["price_corrected"] = "price_corrected"
    subject: str
    was: str
    price_version: str
    by: str
    reason: str = ""


class CostThreshold(TraceEventBody):
    """The share of its cost from which a run is thrifty was passed, or by an extension left again
    (R-BUDGET-5). `usual` plays the role before it, `profile` from now on: the same where there is no cheaper
    one."""

    kind: Literal["cost_threshold"] = "cost_threshold"
    passed: bool
    used: Decimal
    limit: Decimal
    usual: str
    profile: str
