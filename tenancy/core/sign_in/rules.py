"""Sign-in rules of a tenant: roles that need a second factor, and when it is asked again (R-SEC-11).

The second factor can be required again before certain kinds of change.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tenancy.core.roles import Role

LONGEST_MINUTES: Final = 1_440
DEFAULT_MINUTES: Final = 10


class Area(StrEnum):
    """A kind of change before which a person must show the second factor again."""

    MONEY = "money"
    KEYS = "keys"
    INVITATIONS = "invitations"


class MissingFactor(StrEnum):
    """Requirement that a person does not meet: no second factor is enrolled, or none was shown (recently)."""

    ENROL = "enrol"
    PROVE = "prove"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRules:
    """The rules in force. `minutes` is how long a proof by the second factor counts before a change."""

    second_factor: frozenset[Role] = frozenset()
    ask_again: frozenset[Area] = frozenset()
    minutes: int = DEFAULT_MINUTES

    def concerns(self, roles: Collection[Role], areas: Collection[Area]) -> bool:
        """Return whether a person with these roles needs a second factor for changes of these areas."""
        return not self.second_factor.isdisjoint(roles) or not self.ask_again.isdisjoint(areas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A person's second factor as the session knows it.

    `proven_at` is when the person last showed the factor in this session, None if never.
    """

    enrolled: bool
    proven_at: datetime | None = None


def find_lack(
    rules: SignInRules, roles: Collection[Role], areas: Collection[Area], proof: Proof, now: datetime
) -> MissingFactor | None:
    """Return what a person lacks to act, or to make a change of these areas; None for nothing."""
    if not rules.concerns(roles, areas):
        return None
    if not proof.enrolled:
        return MissingFactor.ENROL
    if proof.proven_at is None:
        return MissingFactor.PROVE
    again = not rules.ask_again.isdisjoint(areas)
    if again and now - proof.proven_at >= timedelta(minutes=rules.minutes):
        return MissingFactor.PROVE
    return None


def list_loosenings(before: SignInRules, after: SignInRules) -> tuple[str, ...]:
    """Return the rules that are weaker than before, one sentence each."""
    found = []
    if gone := [role.value for role in Role if role in before.second_factor - after.second_factor]:
        found.append(f"No second factor is needed any more by: {', '.join(gone)}.")
    if gone := [area.value for area in Area if area in before.ask_again - after.ask_again]:
        found.append(f"The second factor is no longer asked for again before: {', '.join(gone)}.")
    if before.ask_again & after.ask_again and after.minutes > before.minutes:
        found.append(f"A proof counts for {after.minutes} minutes, no longer for {before.minutes}.")
    return tuple(found)
