"""Errors of budgets, each with a code and a sentence."""

from tenancy.core.errors import InterlockError


class BudgetError(InterlockError):
    """The budget refused this."""

    code = "budget-error"


class CeilingReached(BudgetError):
    """The tenant's {window} cost ceiling of {limit} US$ is reached; come back in {retry_after} seconds, or
    have an administrator raise it."""

    code = "ceiling-reached"
    http_status = 429


class CeilingTooNear(CeilingReached):
    """The tenant's {window} cost ceiling of {limit} US$ leaves {left} US$, and this task begins with a call
    that may take {wanted} US$; come back in {retry_after} seconds, or have an administrator raise it."""

    code = "ceiling-too-near"


class OverCeiling(BudgetError):
    """The tenant's ceiling is {ceiling} US$ a run; with this extension the run would have {limit} US$."""

    code = "over-ceiling"
    http_status = 422


class RateReached(BudgetError):
    """The limit of {limit} {of} is reached; come back in {retry_after} seconds."""

    code = "rate-reached"
    http_status = 429


class DimensionUnknown(BudgetError):
    """There is no budget dimension {dimension}."""

    code = "dimension-unknown"
    http_status = 422


class AmountInvalid(BudgetError):
    """{amount} is not an amount of {dimension}: {rule}."""

    code = "amount-invalid"
    http_status = 422


class PriceUnknown(BudgetError):
    """There is no price for {model} of {provider}; an unknown price is not zero."""

    code = "price-unknown"
    http_status = 422


class AccountMissing(BudgetError):
    """There is no budget account for the run {run}."""

    code = "account-missing"
    http_status = 500


class LaneUnbounded(BudgetError):
    """A lane of the run {run} needs a limit of its cost: neither it nor the run has one."""

    code = "lane-unbounded"
    http_status = 422


class AccountClosed(BudgetError):
    """The budget account of the run {run} is closed."""

    code = "account-closed"


class ReservationsOpen(BudgetError):
    """The account cannot be closed while effects hold reservations: {effects}."""

    code = "reservations-open"
    http_status = 500


class ReservationUnknown(BudgetError):
    """No open reservation is known for the effect {effect}."""

    code = "reservation-unknown"
    http_status = 500


class LedgerMoved(BudgetError):
    """The account of the run {run} changed under the posting: {detail}."""

    code = "ledger-moved"
    http_status = 500
