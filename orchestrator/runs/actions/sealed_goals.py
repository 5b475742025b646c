"""Seal sensitive values in a goal before any part of the goal is stored (R-SEC-4, R-TRACE-5)."""

from collections.abc import Mapping

from pydantic import ValidationError

from orchestrator.core.admission.errors import GoalInvalid
from orchestrator.core.common.goal import Goal
from traces.core.canonical import canonical_model
from traces.core.redaction import may_hold_secret
from traces.core.sealed_references import Place, Seal, with_known, with_sealed
from traces.sealed_values import Vault

WORDS = ("objective", "constraints", "inputs", "done_condition", "validation_method", "stop_rules")


def sealed_goal(goal: Goal, vault: Vault) -> Goal:
    """Return the goal as it is stored, shown and worked on, with its sensitive values sealed.

    Raises: GoalInvalid if a text has no room for its references.
    """

    def seal(kind: str, secret: str, member: str) -> str:
        return vault.seal(kind, secret, Place(source="goal", member=member))

    return _with_sealed_values(goal, seal, vault.known)


def _with_sealed_values(goal: Goal, seal: Seal, known: Mapping[str, str]) -> Goal:
    if not _may_hold(goal):
        return goal
    held = goal.model_dump(include=set(WORDS), mode="json")
    # The names of the goal's own fields say nothing about their content; the names of the inputs do.
    changed = {name: with_sealed(value, seal) for name, value in held.items()}
    # A value that one input names as a secret may occur in a sentence, too.
    found = dict(known)
    changed = {name: with_known(value, found, seal) for name, value in changed.items()}
    if changed == held:
        return goal
    try:
        return Goal.model_validate({**goal.model_dump(), **changed})
    except ValidationError as error:
        (first, *_) = error.errors(include_input=False, include_url=False)
        where = "".join(f"/{step}" for step in first["loc"])
        detail = "there is no room for the references of its sensitive values"
        raise GoalInvalid(detail=detail, pointer=f"/goal{where}") from None


def _may_hold(goal: Goal) -> bool:
    return may_hold_secret(canonical_model(goal))
