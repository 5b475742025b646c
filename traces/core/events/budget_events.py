"""Trace events about a run's budget, other than reservations and settlements."""

from decimal import Decimal
from typing import Literal

from traces.core.events.event_base import TraceEventBody


class CostCorrected(TraceEventBody):
    """The cost of an effect was corrected in the ledger under another price (R-BUDGET-15).

    `delta`: US$, negative if the effect had been charged too much.
    """

    kind: Literal["cost_corrected"] = "cost_corrected"
    effect: str
    delta: Decimal
    price_version: str
    by: str
    reason: str = ""


class PriceCorrected(TraceEventBody):
    """The run's price for a model or tool was corrected; the pinned price was wrong (R-BUDGET-15).

    The new price applies to all later requests of the run. `subject`: the model with its provider, or the
    tool; `was` is the wrong version.
    """

    kind: Literal["price_corrected"] = "price_corrected"
    subject: str
    was: str
    price_version: str
    by: str
    reason: str = ""


class CostThreshold(TraceEventBody):
    """The cost threshold for cheaper models was passed, or left again after an extension (R-BUDGET-5).

    The threshold is a share of the cost `limit`, from which on the run saves. `usual` is the profile that
    plays the role before the threshold, `profile` the one from now on: both are the same if there is no
    cheaper one.
    """

    kind: Literal["cost_threshold"] = "cost_threshold"
    passed: bool
    used: Decimal
    limit: Decimal
    usual: str
    profile: str
