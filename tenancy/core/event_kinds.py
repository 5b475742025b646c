"""Event kinds for notifications of a tenant's endpoints and people, and their texts (R-API-6).

One kind a line, with its sentence: the page, the API and the document take their choices from this module.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import orjson

from tenancy.core.roles import Role

BUDGET_ALERT: Final = "budget.alert"
RUN_ENDED: Final = "run.ended"
APPROVAL_ASKED: Final = "approval.asked"
UNDO_FAILED: Final = "undo.failed"
RETRY_OUTDATED: Final = "retry.outdated"
FIGURES_DRIFT: Final = "figures.drift"
PERSON_INVITED: Final = "person.invited"
TEST: Final = "webhook.test"

KINDS: Final[Mapping[str, str]] = {
    BUDGET_ALERT: "A day's or month's spending reached 50, 80, 95 or 100 % of its ceiling",
    RUN_ENDED: "A run came to its end",
    APPROVAL_ASKED: "People are asked to decide or to answer",
    UNDO_FAILED: "Something that a run did was not taken back, and nobody chose that",
    RETRY_OUTDATED: "Something may have happened in a run of which its retry does not know",
    FIGURES_DRIFT: "A figure of a workflow's runs drifts",
}
"""What an endpoint may ask for. A test goes to the one endpoint it tries, whatever that asked for."""

READERS: Final[Mapping[str, tuple[Role, ...]]] = {
    UNDO_FAILED: (Role.ADMIN, Role.OPERATOR),
    RETRY_OUTDATED: (Role.ADMIN, Role.OPERATOR),
    FIGURES_DRIFT: (Role.ADMIN,),
    PERSON_INVITED: tuple(Role),
}
"""Whom a notice concerns: they get the letter about it."""


FIGURES: Final[Mapping[str, str]] = {
    "steps": "number of steps",
    "tokens": "number of tokens",
    "seconds": "duration",
}
"""What a figure of runs is called in a sentence, where that is not its own name."""


def format_headline(kind: str, data: Mapping[str, Any]) -> str:
    """Return the headline of a message, in a few words."""
    if kind == BUDGET_ALERT:
        return f"{data.get('threshold_percent')} % of the ceiling for a {data.get('window')}"
    if kind == RUN_ENDED:
        return f"A run of {data.get('workflow')} ended: {data.get('terminal_code')}"
    if kind == APPROVAL_ASKED:
        return f"People are asked about {data.get('tool') or 'a run'} in {data.get('workflow')}"
    if kind == UNDO_FAILED:
        count = data.get("count", len(data.get("left", ())))
        what = "An action" if count == 1 else f"{count} actions"
        return f"{what} of a run of {data.get('workflow')} {'was' if count == 1 else 'were'} not taken back"
    if kind == FIGURES_DRIFT:
        metric = str(data.get("metric"))
        return f"The {FIGURES.get(metric, metric)} of {data.get('workflow')} drifts"
    outdated = f"A retry in {data.get('workflow')} may not know all that happened"
    named = {TEST: "A test", RETRY_OUTDATED: outdated, PERSON_INVITED: "You are invited"}
    return named.get(kind, KINDS.get(kind, kind))


def format_explanation(kind: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the lines of a notice below its headline; money and amounts are text."""
    if kind == UNDO_FAILED:
        left = [f"- {one['tool']}: {one['says']}" for one in data["left"]]
        more = data.get("count", len(left)) - len(left)
        return (
            "The run failed, and nobody wanted this to stand:",
            *left,
            *((f"- and {more} more",) if more > 0 else ()),
            "Somebody has to see to it by hand.",
        )
    if kind == RETRY_OUTDATED:
        return (
            f"Once the run {data['before']} had been retried, it was learnt that it may have done this:",
            *(f"- {tool}" for tool in data["tools"]),
            "Its retry may do it again. Somebody has to look.",
        )
    if kind == PERSON_INVITED:
        return ("This link sets your password. It ends with its first use, or after three days:",)
    if kind == FIGURES_DRIFT:
        runs, unit = data["runs"], data["unit"]
        return (
            f"The median of the newest {runs} runs is {_format_measurement(data['now'], unit)}.",
            (
                f"That of as many before them was {_format_measurement(data['before'], unit)}; chance does "
                f"not explain it."
            ),
        )
    return ()


def _format_measurement(amount: str, unit: str) -> str:
    return f"US$ {amount}" if unit == "usd" else f"{amount} {unit}"


def place_of(kind: str, data: Mapping[str, Any]) -> str:
    """Return the path of the page that shows the subject of a notice."""
    if kind in (UNDO_FAILED, RETRY_OUTDATED):
        return f"/runs/{data['run']}"
    return f"/budgets/figures?workflow={quote(str(data['workflow']))}" if kind == FIGURES_DRIFT else "/"


def encode_event_message(kind: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """Return the message body {type, timestamp, data}, as Standard Webhooks defines it.

    `data` contains JSON values only; money and ids are text.
    """
    body = {"type": kind, "timestamp": at.isoformat(), "data": dict(data)}
    return orjson.dumps(body)
