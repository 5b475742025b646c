"""Read a boundary's document, and list where a boundary permits more than another.

Spec: R-GRAPH-10, R-GRAPH-11.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from pydantic import ValidationError

from budgets.core.amounts import Vector
from budgets.core.errors import AmountInvalid, DimensionUnknown
from budgets.core.limit_profiles import PROFILES, ROWS
from orchestrator.core.domain.boundary import Boundary
from tenancy.core.errors import InvalidInput

LONGEST_SLUG: Final = 50
MEMORY: Final = ("none", "read", "propose")
COUNTS: Final = {
    "grant_ttl_seconds": "seconds in which an approval may be used", "budget_requests": "requests for more",
    "identical_calls": "identical calls", "unchanged_limit": "steps that change nothing",
    "tool_error_limit": "failures of tools", "refusal_limit": "refusals by people",
    "denial_limit": "denials", "max_parallel_tool_calls": "calls at a time",
    "max_calls_per_reply": "calls a reply",
}  # fmt: skip
ADDED: Final = {
    "observations": "It reads more sources: {}.", "state_writes": "It writes more state: {}.",
    "decision_rights": "The model decides more: {}.",
}  # fmt: skip
REMOVED: Final = {
    "denied_words": "These words are no longer denied: {}.",
    "with_approval": "The model is no longer told to ask before: {}.",
    "fails_closed_on": "It no longer names as a reason to stop: {}.",
}  # fmt: skip
ALLOWED: Final = {
    "observations": "It reads: {}.", "state_writes": "It writes the state: {}.",
    "decision_rights": "The model decides: {}.",
}  # fmt: skip
# A tool that no exact name and no family lists is judged by its family's prefix and this suffix.
UNNAMED: Final = "~"


def read_boundary(document: Mapping[str, Any]) -> Boundary:
    """Read a boundary from a document; `profile` fills in the limits that `budget` leaves out.

    The author cannot set the version.
    Raises: InvalidInput naming each wrong, unknown or missing field.
    """
    limits = _parse_budget_limits(document)
    plain = {name: value for name, value in document.items() if name not in ("profile", "version")}
    try:
        boundary = Boundary.model_validate({**plain, "budget": limits, "version": 1})
    except ValidationError as error:
        raise InvalidInput(
            errors=[
                _make_field_error(
                    "/" + "/".join(str(part) for part in found["loc"]),
                    found["msg"],
                    code="unknown" if found["type"] == "extra_forbidden" else "invalid",
                )
                for found in error.errors(include_url=False, include_input=False, include_context=False)[:50]
            ]
        ) from None
    faults = list(_find_name_errors(boundary))
    if faults:
        raise InvalidInput(errors=faults)
    return boundary


def list_widenings(before: Boundary | None, after: Boundary) -> tuple[str, ...]:
    """List, one sentence each, where a run under `after` may do more than one under `before`.

    Without `before` the list names all that `after` allows, because a task may use the boundary at once.
    """
    return tuple(_allowances(after) if before is None else _describe_widenings(before, after))


def _allowances(after: Boundary) -> Iterator[str]:
    """Describe all that a new boundary allows. Later versions are described as differences from it."""
    tools = ", ".join(f"{grant.name} up to {after.ceiling_of(grant)}" for grant in after.tools)
    yield f"It is new, and allows {tools or 'no tool'}."
    limits = ((name, after.budget.get(name)) for name in sorted(after.budget))
    yield f"Its limits: {', '.join(f'{name} {_limit(limit)}' for name, limit in limits) or 'none'}."
    for name, sentence in ALLOWED.items():
        if found := getattr(after, name):
            yield sentence.format(", ".join(found))[:300]
    if after.memory != "none":
        yield f"Memory: {after.memory}."
    routes = ", ".join(f"{queue} about {reason}" for reason, queue in sorted(after.escalation_routes.items()))
    yield f"The queues that are asked: {routes or 'those of the workflow and its tools'}."[:300]
    yield from _without_people(after)


def _without_people(after: Boundary) -> Iterator[str]:
    if after.compensation == "automatic":
        yield "What a failed run did is undone with nobody asked."
    if after.on_exhaustion == "request":
        yield "A run whose budget is used up asks for more and does not end."


def _limit(limit: Decimal | None) -> str:
    return "none" if limit is None else f"{limit:f}"


def _describe_widenings(before: Boundary, after: Boundary) -> Iterator[str]:
    yield from _more_tools(before, after)
    yield from _more_budget(before, after)
    yield from _longer_lists(before, after)
    for name, noun in COUNTS.items():
        was, now = getattr(before, name), getattr(after, name)
        if now > was:
            yield f"{now} {noun}, no longer {was}."
    yield from _fewer_people(before, after)


def _more_tools(before: Boundary, after: Boundary) -> Iterator[str]:
    """Compare the grants of both lists, name by name and family by family.

    A family represents every tool that no other entry names, so no further name needs a comparison.
    """
    patterns = dict.fromkeys(grant.name for one in (after, before) for grant in one.tools)
    for pattern in patterns:
        name = pattern[:-1] + UNNAMED if pattern.endswith(".*") else pattern
        was, now = before.grant_for(name), after.grant_for(name)
        if now is None:
            continue
        if was is None:
            yield f"It allows {pattern} up to {after.ceiling_of(now)}."
        elif after.ceiling_of(now).rank > before.ceiling_of(was).rank:
            yield f"It allows {pattern} up to {after.ceiling_of(now)}, no longer {before.ceiling_of(was)}."
        if was is not None and was.sandbox and not now.sandbox:
            yield f"{pattern} is no longer called in isolation alone."


def _more_budget(before: Boundary, after: Boundary) -> Iterator[str]:
    for name in sorted({*before.budget, *after.budget}):
        was, now = before.budget.get(name), after.budget.get(name)
        if was is not None and (now is None or now > was):
            yield f"Its limit of {name} is {'none' if now is None else f'{now:f}'}, no longer {was:f}."


def _longer_lists(before: Boundary, after: Boundary) -> Iterator[str]:
    for name, sentence in ADDED.items():
        if more := [one for one in getattr(after, name) if one not in getattr(before, name)]:
            yield sentence.format(", ".join(more))[:300]
    for name, sentence in REMOVED.items():
        if gone := [one for one in getattr(before, name) if one not in getattr(after, name)]:
            yield sentence.format(", ".join(gone))[:300]
    for name in type(after.scope).model_fields:
        if more := [one for one in getattr(after.scope, name) if one not in getattr(before.scope, name)]:
            yield f"More {name} count as named by the task: {', '.join(more)}."[:300]
    if MEMORY.index(after.memory) > MEMORY.index(before.memory):
        yield f"Memory: {after.memory}, no longer {before.memory}."


def _fewer_people(before: Boundary, after: Boundary) -> Iterator[str]:
    """Describe where a person is no longer asked, or where other people are asked."""
    for reason, queue in before.escalation_routes.items():
        if after.escalation_routes.get(reason) != queue:
            yield f"The queue {queue} is no longer asked about {reason}."
    if after.compensation == "automatic" and before.compensation != "automatic":
        yield "What a failed run did is undone with nobody asked."
    if after.on_exhaustion == "request" and before.on_exhaustion == "stop":
        yield "A run whose budget is used up asks for more and no longer ends."


def _parse_budget_limits(document: Mapping[str, Any]) -> dict[str, Decimal | None]:
    """Return the limits of a document: those of its profile, overridden by its own.

    Raises: InvalidInput.
    """
    profile, stated = document.get("profile"), document.get("budget", {})
    if profile is not None and profile not in PROFILES:
        raise InvalidInput(errors=[_make_field_error("/profile", f"One of {', '.join(sorted(PROFILES))}.")])
    if not isinstance(stated, Mapping):
        raise InvalidInput(
            errors=[_make_field_error("/budget", "A limit for each dimension, or null for none.")]
        )
    limits: dict[str, Any] = {**(PROFILES[profile] if profile else {}), **stated}
    if missing := [row.value for row in ROWS if row.value not in limits]:
        sentence = f"Name a profile, or state a limit of: {', '.join(missing)}; null is none."
        raise InvalidInput(errors=[_make_field_error("/budget", sentence, code="required")])
    return {str(name): _parse_limit_amount(str(name), given) for name, given in limits.items()}


def _parse_limit_amount(name: str, given: Any) -> Decimal | None:
    try:
        amount = None if given is None else Decimal(str(given))
        Vector.of({name: amount})
        if amount is not None and amount < 0:
            raise AmountInvalid(dimension=name, amount=amount, rule="it is negative")
    except (ArithmeticError, AmountInvalid, DimensionUnknown) as error:
        sentence = str(error) if isinstance(error, DimensionUnknown) else "An amount, or null for none."
        raise InvalidInput(errors=[_make_field_error(f"/budget/{name}", sentence)]) from None
    return amount


def _find_name_errors(boundary: Boundary) -> Iterator[dict[str, str]]:
    if len(boundary.slug) > LONGEST_SLUG:
        yield _make_field_error("/slug", f"At most {LONGEST_SLUG} characters.")
    for place, grant in enumerate(boundary.tools):
        plain = grant.name.removesuffix(".*")
        if not plain or "*" in plain or any(not sign.isprintable() or sign.isspace() for sign in plain):
            sentence = "The name of a tool, such as crm.find, or a family, such as crm.*."
            yield _make_field_error(f"/tools/{place}/name", sentence)


def _make_field_error(pointer: str, detail: str, *, code: str = "invalid") -> dict[str, str]:
    return {"pointer": pointer, "code": code, "detail": detail}
