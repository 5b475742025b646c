"""Messages of the breakers: trigger, refused action, origin of the limit, and remedy (R-BUDGET-12).

A breaker's event holds its figures. The origin of the limit follows from what the run is pinned to, so it is
not stored.
"""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final, NamedTuple

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.boundary import Boundary
from traces.core.canonical import format_decimal

WINDOWS: Final = {
    "tenant_day": "the tenant's ceiling for a day", "tenant_month": "the tenant's ceiling for a month",
}  # fmt: skip
ANY_WINDOW: Final = "the tenant's ceiling"


class Trip(FrozenModel):
    """One breaker's event.

    `account`: the account that refused the reservation, if there was one: the `run`'s own line, the
    `estimate` of what it still needs, or a line of the tenant's. `ceiling`: the amount of the limit that
    refused; None if it is unknown.
    """

    breaker: str
    reason: str
    subject: str = ""
    limit: Decimal | None = None
    actual: Decimal | None = None
    account: str = "run"
    ceiling: Decimal | None = None


class BreakerTexts(NamedTuple):
    """The texts of a breaker: a title, what happened, what was refused, the remedy.

    `what` and `refused` take the event's figures by name.
    """

    title: str
    what: str
    refused: str
    back: str


class Setters(FrozenModel):
    """The origins of a run's limits, in words.

    `dimensions`: for each limited dimension. `windows`: for each of the tenant's ceilings that stopped the
    run.
    """

    boundary: str
    dimensions: Mapping[str, str]
    tools: Mapping[str, str]
    profiles: Mapping[str, str]
    windows: Mapping[str, str] = {}
    house: str = "the settings of this house"
    safety: str = "the safety rules of this house"


_GIVE_MORE: Final = "More can be given where the boundary asks people for it; else submit it again with more."
WORDS: Final[Mapping[str, BreakerTexts]] = MappingProxyType(
    {
        "wall_clock": BreakerTexts(
            "Wall clock", "the allowed {limit} s of working time were used up",
            "Nothing further was started.", _GIVE_MORE,
        ),
        "repeated_call": BreakerTexts(
            "Repeated call",
            "{subject} was asked for with the same arguments again: {actual} times, {limit} are allowed",
            "That call was not made.",
            "The model is told to use the result it has; repair, ask, or escalate.",
        ),
        "retry_storm": BreakerTexts(
            "Retry storm", "{subject} kept failing in passing ({reason}), {limit} attempts long",
            "No further attempt was made.",
            "Each attempt waited longer than the one before. Submit it again when the other side is back.",
        ),
        "budget_gate": BreakerTexts(
            "Budget gate", "the next step needed {actual} of {reason}, and {limit} was left",
            "That step was not started.", _GIVE_MORE,
        ),
        "context_pressure": BreakerTexts(
            "Context pressure", "the next prompt has {actual} tokens at most, {limit} are allowed",
            "The prompt was not sent.", _GIVE_MORE,
        ),
        "privileged_action": BreakerTexts(
            "Privileged action", "{subject} is {reason}: its effect is outside this run",
            "It is sent only after an approval.",
            "After a rejection the workflow goes another way.",
        ),
        "safety": BreakerTexts(
            "Safety", "a safety rule was broken by the {subject}: {reason}",
            "Nothing of it was used.", "Security reviews the trace, which is kept whole.",
        ),
        "circuit": BreakerTexts(
            "Circuit", "{subject} takes no calls for the moment", "The call was not sent.",
            "After its cooldown one call tries it again; an administrator may close it on the system page.",
        ),
        "no_progress": BreakerTexts(
            "No progress", "nothing changed over {actual} steps, {limit} are allowed",
            "No further step was started.", "Read what the model tried, then change the goal or its inputs.",
        ),
        "compensation": BreakerTexts(
            "Compensation", "what {subject} did could not be taken back ({reason})",
            "It stands as it is.", "Take it back by hand; the run's report says what was done and with what.",
        ),
        "tool_errors": BreakerTexts(
            "Tool errors", "{actual} calls in a row failed, {limit} are allowed",
            "No further call was made.", "Submit it again when the tools answer.",
        ),
    }
)  # fmt: skip
_NARROWED: Final = BreakerTexts(
    "Context pressure", "the next prompt would have had {actual} tokens, {limit} are the mark",
    "The oldest {subject} stayed out of the prompt.",
    "What they brought stands in it as facts, and whole in the trace.",
)  # fmt: skip
_FORESEEN: Final = BreakerTexts(
    "Budget gate", "what is left to do needs {actual} of {reason} at least, and {limit} was left",
    "The next step was not started: the run could not have finished.", _GIVE_MORE,
)  # fmt: skip
CEILING_BACK: Final = "It opens when its window turns, or when an administrator raises it."
_OWN: Final = WORDS["budget_gate"]._replace(
    what="the run's limit of {reason} is {ceiling}: the next step needed {actual}, and {limit} was left"
)
_OWN_FORESEEN: Final = _FORESEEN._replace(
    what="the run's limit of {reason} is {ceiling}: "
    "what is left to do needs {actual} at least, and {limit} was left"
)
_CEILING: Final = BreakerTexts(
    "Budget gate", "{window} is {ceiling}: the next step needed {actual} of {reason}, and {limit} was left",
    "That step was not started.", CEILING_BACK,
)  # fmt: skip
_OVERRUN: Final = BreakerTexts(
    "Circuit", "{subject} reported {actual} of a dimension of which {limit} was reserved",
    "Nothing more is asked of it in this run.", "Have an administrator look at the model's profile.",
)  # fmt: skip
_UNKNOWN: Final = BreakerTexts(
    "Breaker", "{reason} {subject}", "What came next was not started.", "Read the trace."
)
MONEY: Final = "cost_usd"
_BY_BOUNDARY: Final = ("repeated_call", "no_progress", "tool_errors")


class BreakerMessage(FrozenModel):
    """A breaker's trip in words. `what` and `refused` may hold text from outside."""

    title: str
    what: str
    refused: str
    back: str
    set_by: str


def told_of(trip: Trip, setters: Setters) -> BreakerMessage:
    """Describe the trip in words."""
    words = _select_breaker_texts(trip)
    figures = {
        "limit": _format_trip_amount(trip, trip.limit),
        "actual": _format_trip_amount(trip, trip.actual),
        "reason": _format_dimension(trip.reason),
        "subject": _get_trip_subject(trip),
        "ceiling": _format_trip_amount(trip, trip.ceiling),
        "window": WINDOWS.get(trip.account, ANY_WINDOW),
    }
    return BreakerMessage(
        title=words.title, what=words.what.format(**figures), refused=words.refused.format(**figures),
        back=words.back, set_by=set_by(trip, setters),
    )  # fmt: skip


def in_one(told: BreakerMessage) -> str:
    """Return the message as a few sentences: the limit and its amount, what was refused, who set it."""
    return f"{told.what[:1].upper()}{told.what[1:]}. {told.refused} It was set by {told.set_by}."


def set_by(trip: Trip, setters: Setters) -> str:
    """Return the origin of the limit that tripped."""
    if trip.account.startswith("tenant"):
        return setters.windows.get(trip.account) or WINDOWS.get(trip.account, ANY_WINDOW)
    if trip.breaker in _BY_BOUNDARY or trip.reason == "repeated_denials":
        return setters.boundary
    fixed = {
        "safety": setters.safety,
        "circuit": setters.house if trip.reason == "open" else "the reservation before the call",
        "privileged_action": setters.tools.get(trip.subject, setters.boundary),
        "retry_storm": _of_retries(trip, setters),
    }
    return fixed[trip.breaker] if trip.breaker in fixed else _of_dimension(trip, setters)


def _of_retries(trip: Trip, setters: Setters) -> str:
    own = setters.tools.get(trip.subject) or setters.profiles.get(trip.subject)
    return own or setters.dimensions.get("retries", "the model's profile")


def _of_dimension(trip: Trip, setters: Setters) -> str:
    dimension = "wall_clock_seconds" if trip.breaker == "wall_clock" else trip.reason
    if trip.breaker == "context_pressure" and dimension not in setters.dimensions:
        return setters.dimensions.get("context_tokens", "the window of the model")
    return setters.dimensions.get(dimension, setters.boundary)


def describe_limit_origins(
    limits: Mapping[str, Decimal],
    *,
    boundary: Boundary,
    workflow: str,
    workflow_budget: Mapping[str, object],
    defaults: Mapping[str, Decimal],
    ceiling: Decimal | None,
    task: str,
) -> dict[str, str]:
    """Describe the origin of each limit that a run was admitted with.

    The limit on transitions comes from compilation. A cost limit that equals the tenant's ceiling for one run
    is attributed to that ceiling. Any other limit that differs from `defaults` was requested by the task. A
    limit that equals the workflow's is attributed to the workflow, else one that equals the boundary's to the
    boundary, else to the defaults.

    `defaults`: the limits that apply if the task requests nothing.
    """
    found = {}
    for name, limit in limits.items():
        drawn, granted = workflow_budget.get(name), boundary.budget.get(name)
        if name == "transitions":
            found[name] = f"{workflow}, as it was compiled"
        elif name == "cost_usd" and ceiling is not None and limit == ceiling:
            found[name] = "the tenant's ceiling for one run"
        elif limit != defaults.get(name):
            found[name] = task
        elif drawn is not None and Decimal(str(drawn)) == limit:
            found[name] = workflow
        elif granted is not None and granted == limit:
            found[name] = f"boundary {boundary.slug} v{boundary.version}"
        else:
            found[name] = "the defaults of this house"
    return found


def _select_breaker_texts(trip: Trip) -> BreakerTexts:
    if trip.breaker == "context_pressure" and trip.reason == "narrowed":
        return _NARROWED
    if trip.breaker == "circuit" and trip.reason == "overrun":
        return _OVERRUN
    if trip.breaker == "budget_gate":
        return _select_budget_gate_texts(trip)
    return WORDS.get(trip.breaker, _UNKNOWN)


def _select_budget_gate_texts(trip: Trip) -> BreakerTexts:
    if trip.account == "estimate":
        return _FORESEEN if trip.ceiling is None else _OWN_FORESEEN
    if trip.ceiling is None:
        return WORDS[trip.breaker]
    return _CEILING if trip.account.startswith("tenant") else _OWN


def _format_trip_amount(trip: Trip, amount: Decimal | None) -> str:
    if amount is None:
        return "no"
    return f"${format_decimal(amount)}" if trip.reason == MONEY else format_decimal(amount)


def _format_dimension(word: str) -> str:
    return "cost" if word == MONEY else word.replace("_", " ")


def _get_trip_subject(trip: Trip) -> str:
    return trip.subject or "the model"
