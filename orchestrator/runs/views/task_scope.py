"""The reach of a task's changes as pages show it: things the task names, and grants of its boundary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.core.policy.rules import Policy
from orchestrator.core.policy.task_scope import ScopeGrant, TaskScope

LABELS: Final = (
    ("Recipients", "recipients"), ("Accounts", "accounts"), ("Addresses", "urls"), ("Hosts", "domains"),
    ("Files", "paths"), ("Numbers", "references"), ("Amounts", "amounts"), ("Results of", "sources"),
    ("Planned tools", "tools"),
)  # fmt: skip
SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kind of thing: those that the task names, and those that the boundary grants in addition."""

    label: str
    named: tuple[str, ...]
    granted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The parts that are not empty.

    `version` is the version of the policy: 0 for the shipped policy, None for no policy.
    """

    parts: tuple[Part, ...]
    version: int | None


def reach_of(scope: TaskScope | None, granted: ScopeGrant, policy: Policy | None) -> Reach:
    """Build the reach of a task under a boundary."""
    parts = (
        Part(label=label, named=_list_scope_names(scope, name), granted=_list_scope_names(granted, name))
        for label, name in LABELS
    )
    return Reach(
        parts=tuple(part for part in parts if part.named or part.granted),
        version=policy.version if policy is not None else None,
    )


def by_reason(named: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Group the tools by reason."""
    found: dict[str, list[str]] = {}
    for tool, why in sorted(named.items()):
        found.setdefault(why, []).append(tool)
    return list(found.items())


def _list_scope_names(where: TaskScope | ScopeGrant | None, name: str) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(where, name, ())
    return found[:SHOWN]
