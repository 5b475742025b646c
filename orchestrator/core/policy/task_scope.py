"""The scope of a task: the things that it names itself and that a change may rely on (R-TOOL-17).

The scope is derived from the goal when the run is admitted, and pinned with its manifest. Only the boundary's
grants and the submitter's answers widen it. Content that the run reads adds nothing to it.
"""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.goal import Goal
from orchestrator.core.common.name_patterns import is_name_match
from orchestrator.core.policy.provenance.normalization import has_hidden_characters, normalize_text
from orchestrator.core.policy.provenance.value_kinds import (
    EMAIL,
    Kind,
    Things,
    amounts_of,
    host_of,
    kind_of,
    mask_reference_digits,
    normalize_account_number,
    normalize_file_path,
    normalize_recipient,
    things_in,
)
from orchestrator.core.policy.provenance.value_matching import words_of

Standing = Literal["inside", "outside", "unnamed"]
Pattern = str
SHOWN = 200
NAMED: Mapping[Kind, str] = {
    "recipient": "recipients", "account": "accounts", "url": "urls", "path": "paths",
    "amount": "amounts", "reference": "references",
}  # fmt: skip


class ScopeGrant(FrozenModel):
    """The additions of a boundary to the scope of every task under it.

    Patterns hold `*` for any text: `*@example.org`, `*.example.org`, `/srv/reports/*`. `sources` name leaves
    of results, such as `orders.lookup/email`, whose value counts as named. `tools` are part of the plan from
    the start: requesting them after untrusted content was read adds nothing (R-TOOL-18).
    """

    recipients: tuple[Pattern, ...] = Field(default=(), max_length=100)
    accounts: tuple[Pattern, ...] = Field(default=(), max_length=100)
    domains: tuple[Pattern, ...] = Field(default=(), max_length=100)
    paths: tuple[Pattern, ...] = Field(default=(), max_length=100)
    sources: tuple[str, ...] = Field(default=(), max_length=100)
    tools: tuple[str, ...] = Field(default=(), max_length=100)

    def plans(self, tool: str) -> bool:
        """Return whether `tool` is part of the plan from the start."""
        return any(is_name_match(pattern, tool) for pattern in self.tools)


class TaskScope(FrozenModel):
    """The things that a goal names, each normalized; amounts as plain decimals."""

    recipients: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()

    def with_answers(self, given: Any) -> "TaskScope":
        """Return the scope with what the submitter named in answers to the run's questions."""
        return self if not given else _merge_scopes((self, _of_inputs(given)))

    @property
    def empty(self) -> bool:
        """True if the goal names nothing."""
        return not any(self.__dict__.values())


def scope_of(goal: Goal, untrusted: Collection[str] = ()) -> TaskScope:
    """Derive the scope of a goal from its objective, its inputs and its done condition.

    Constraints say what not to do, so they name nothing. The inputs in `untrusted` name nothing either.
    """
    told = f"{goal.objective}\n{goal.done_condition}"
    given = {name: value for name, value in goal.inputs.items() if name not in untrusted}
    return _merge_scopes((_of_things(things_in(told)), _of_inputs(given)))


def match_task_scope(kind: Kind, value: Any, scope: TaskScope, grant: ScopeGrant, *, said: bool) -> Standing:
    """Return whether the task names a value: inside, outside, or unnamed.

    "outside": the task names other values of this kind. "unnamed": the task names no value of this kind.
    `said`: the goal states exactly this text.
    """
    text = value if isinstance(value, str) else ""
    if has_hidden_characters(text):
        return "outside"
    if _JUDGES.get(kind, _by_text)(kind, value, scope, grant) or (said and kind not in ("url", "amount")):
        return "inside"
    return "outside" if _names_any(kind, value, scope) else "unnamed"


def _names_any(kind: Kind, value: Any, scope: TaskScope) -> bool:
    if kind == "url":
        return bool(scope.urls or scope.domains)
    if kind == "reference":
        like = mask_reference_digits(str(value))
        return any(mask_reference_digits(one) == like for one in scope.references)
    return bool(getattr(scope, NAMED[kind])) if kind in NAMED else False


def _by_text(_kind: Kind, _value: Any, _scope: TaskScope, _grant: ScopeGrant) -> bool:
    return False


def _is_recipient_in_scope(_kind: Kind, value: Any, scope: TaskScope, grant: ScopeGrant) -> bool:
    """Return whether every address in the value is named and nothing else is hidden among them."""
    text = normalize_text(str(value))
    found = EMAIL.findall(text)
    if not found:
        return normalize_recipient(str(value)) in scope.recipients or _is_granted_value(
            text, grant.recipients
        )
    if any(sign in EMAIL.sub("", text) for sign in "@%?&\\") or "\n" in str(value) or "\r" in str(value):
        return False
    return all(one in scope.recipients or _is_granted_value(one, grant.recipients) for one in found)


def _is_account_in_scope(_kind: Kind, value: Any, scope: TaskScope, grant: ScopeGrant) -> bool:
    bare = normalize_account_number(str(value))
    return bare in scope.accounts or _is_granted_value(bare, grant.accounts)


def _is_url_in_scope(_kind: Kind, value: Any, scope: TaskScope, grant: ScopeGrant) -> bool:
    text = str(value).strip()
    host = host_of(text)
    if not host or any(sign.isspace() for sign in text):
        return False
    return text in scope.urls or host in scope.domains or _is_granted_value(host, grant.domains)


def _is_path_in_scope(_kind: Kind, value: Any, scope: TaskScope, grant: ScopeGrant) -> bool:
    """Return whether the path is named or lies in a named folder."""
    wanted = normalize_file_path(str(value))
    if not wanted or wanted.startswith(".."):
        return False
    within = (wanted == one or wanted.startswith(one.rstrip("/") + "/") for one in scope.paths)
    return any(within) or any(fnmatchcase(wanted, pattern) for pattern in grant.paths)


def _is_amount_in_scope(_kind: Kind, value: Any, scope: TaskScope, _grant: ScopeGrant) -> bool:
    """Return whether the amount is named in every way that it can be read."""
    named, read = {Decimal(one) for one in scope.amounts}, amounts_of(value)
    return bool(read) and all(one in named for one in read)


def _is_reference_in_scope(_kind: Kind, value: Any, scope: TaskScope, _grant: ScopeGrant) -> bool:
    return normalize_text(str(value)) in scope.references


_JUDGES = {
    "recipient": _is_recipient_in_scope,
    "account": _is_account_in_scope,
    "url": _is_url_in_scope,
    "path": _is_path_in_scope,
    "amount": _is_amount_in_scope,
    "reference": _is_reference_in_scope,
}


def _is_granted_value(value: str, patterns: Iterable[Pattern]) -> bool:
    return any(fnmatchcase(value, normalize_text(pattern)) for pattern in patterns)


# -- deriving it


def _of_things(found: Things) -> TaskScope:
    return TaskScope(**{name: given[:SHOWN] for name, given in found._asdict().items()})


def _of_inputs(given: Any) -> TaskScope:
    """Derive a scope from inputs, by the shape of each value and by its name."""
    told = things_in(words_of(given)[:200_000])
    return _merge_scopes(
        (_of_things(told), *(_of_leaf(name, value) for name, value in _flatten_scope_leaves(given, "")))
    )


def _of_leaf(pointer: str, value: Any) -> TaskScope:
    kind, text = kind_of(pointer, value), str(value)
    if (
        kind in ("recipient", "account", "path", "reference")
        and 0 < len(text) <= 300
        and not has_hidden_characters(text)
    ):
        spelt = {
            "recipient": normalize_recipient,
            "account": normalize_account_number,
            "path": normalize_file_path,
            "reference": normalize_text,
        }[kind](text)
        return TaskScope(**{NAMED[kind]: (spelt,)})
    if kind == "amount":
        return TaskScope(amounts=tuple(f"{one:f}" for one in amounts_of(value)))
    if kind == "url" and (host := host_of(text)):
        return TaskScope(domains=(host,))
    return TaskScope()


def _flatten_scope_leaves(value: Any, pointer: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [found for key in value for found in _flatten_scope_leaves(value[key], f"{pointer}/{key}")]
    if isinstance(value, list):
        return [found for item in value for found in _flatten_scope_leaves(item, pointer)]
    return [] if value is None else [(pointer, value)]


def _merge_scopes(scopes: Iterable[TaskScope]) -> TaskScope:
    found = list(scopes)
    every = {
        name: tuple(sorted({one for scope in found for one in getattr(scope, name)}))[:SHOWN]
        for name in TaskScope.model_fields
    }
    return TaskScope(**every)
