"""Policy rules by tool, argument and origin, for values that no trusted source confirms (R-TOOL-17).

For each leaf of a call's arguments the first matching rule decides; the strictest leaf decides for the call.
This policy allows a leaf that no rule matches.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, WithJsonSchema, field_validator

from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.common.name_patterns import named_by
from orchestrator.core.policy.detectors import PLACES, SEVERITIES, Place, Severity, discover_detectors
from orchestrator.core.policy.provenance.value_kinds import KINDS, Kind
from orchestrator.core.policy.task_scope import Standing
from traces.core.canonical import canonical_model, compute_digest

Origin = Literal["goal", "plan", "trusted_fact", "untrusted_observation", "person", "model"]
Decision = Literal["allow", "gate", "deny"]
Chooser = Literal["model", "plan"]

ORIGINS: tuple[Origin, ...] = ("goal", "plan", "person", "trusted_fact", "model", "untrusted_observation")
STANDINGS: tuple[Standing, ...] = ("inside", "unnamed", "outside")
RANK: dict[Decision, int] = {"allow": 0, "gate": 1, "deny": 2}
MOST_RULES = 60
CHOOSERS: tuple[Chooser, ...] = ("model", "plan")
_OTHER = "zz_other"
# The API requires these forms for new policies. A policy that a run is pinned to is read without them.
ToolPattern = Annotated[
    str, WithJsonSchema({"type": "string", "maxLength": 64, "pattern": r"^[A-Za-z0-9][A-Za-z0-9._]*(\.\*)?$"})
]
ArgumentPointer = Annotated[str, WithJsonSchema({"type": "string", "maxLength": 200, "pattern": "^/"})]
T = TypeVar("T")


class Leaf(NamedTuple):
    """One leaf as a policy sees it.

    `argument` is its pointer without list indexes. `chosen` says who chose the value, the model or the
    workflow. `carries`: the value would carry away content that the run has read.
    """

    tool: str
    mutating: bool
    argument: str
    kind: Kind
    sensitive: bool
    origin: Origin
    standing: Standing
    chosen: Chooser
    carries: bool = False


class Rule(FrozenModel):
    """One rule. An empty list, or None, matches everything.

    `tools` may end in `.*`. `arguments` are pointers without list indexes and include everything below them.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,47}$")
    decision: Decision
    reason: str = Field(min_length=1, max_length=300)
    tools: tuple[ToolPattern, ...] = Field(default=(), max_length=50)
    arguments: tuple[ArgumentPointer, ...] = Field(default=(), max_length=50)
    kinds: tuple[Kind, ...] = ()
    origins: tuple[Origin, ...] = ()
    scope: tuple[Standing, ...] = ()
    mutating: bool | None = True
    sensitive: bool | None = None
    chosen: Chooser | None = None
    carries: bool | None = None

    @field_validator("tools")
    @classmethod
    def _check_tool_names(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        for tool in tools:
            bare = tool.removesuffix(".*")
            if not bare or len(tool) > 64 or not bare.replace(".", "").replace("_", "").isalnum():
                raise ValueError(f"{tool[:80]!r} is no name of a tool")
        return tools

    @field_validator("arguments")
    @classmethod
    def _check_pointers(cls, arguments: tuple[str, ...]) -> tuple[str, ...]:
        for pointer in arguments:
            if not pointer.startswith("/") or len(pointer) > 200:
                raise ValueError(f"{pointer[:80]!r} is no pointer: it begins with /")
        return arguments

    def reaches(self, tool: str, *, mutating: bool) -> bool:
        """Return whether the rule can match any leaf of this tool."""
        return self.mutating in (None, mutating) and (not self.tools or named_by(self.tools, tool))

    def fits(self, leaf: Leaf) -> bool:
        """Return whether the rule matches this leaf."""
        return (
            self.reaches(leaf.tool, mutating=leaf.mutating)
            and (
                not self.arguments
                or any(is_at_or_below_pointer(leaf.argument, one) for one in self.arguments)
            )
            and (not self.kinds or leaf.kind in self.kinds)
            and (not self.origins or leaf.origin in self.origins)
            and (not self.scope or leaf.standing in self.scope)
            and self.sensitive in (None, leaf.sensitive)
            and self.chosen in (None, leaf.chosen)
            and self.carries in (None, leaf.carries)
        )


class Policy(FrozenModel):
    """A version of a tenant's policy.

    `after_untrusted` applies to a mutating tool that the model requests for the first time after untrusted
    content was read (R-TOOL-18). `safety` maps a place and a detector to a severity, such as
    {"result:injection": "stop"}, where it differs from the detector's own (R-TOOL-24). Version 0 is the
    shipped policy.
    """

    version: int = Field(default=0, ge=0)
    rules: tuple[Rule, ...] = Field(default=(), max_length=MOST_RULES)
    after_untrusted: Decision = "gate"
    safety: dict[str, Severity] = Field(default_factory=dict, max_length=60)

    @field_validator("safety")
    @classmethod
    def _check_detectors(cls, safety: dict[str, Severity]) -> dict[str, Severity]:
        known = {f"{place}:{name}" for place in PLACES for name in discover_detectors()}
        if strange := sorted(set(safety) - known):
            raise ValueError(f"{strange[0][:80]!r} is no place and detector, such as result:injection")
        return safety

    @field_validator("rules")
    @classmethod
    def _once(cls, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        names = [rule.name for rule in rules]
        if len(set(names)) < len(names):
            raise ValueError("two rules have one name")
        return rules

    @property
    def digest(self) -> str:
        """The digest that identifies the policy (hex)."""
        return compute_digest("policy", canonical_model(self))

    def reaches(self, tool: str, *, mutating: bool) -> bool:
        """Return whether the policy can gate or deny a call of this tool."""
        asks = any(rule.reaches(tool, mutating=mutating) and rule.decision != "allow" for rule in self.rules)
        return asks or (mutating and self.after_untrusted != "allow")

    def rule_for(self, leaf: Leaf) -> Rule | None:
        """Return the first rule that matches, or None."""
        return next((rule for rule in self.rules if rule.fits(leaf)), None)

    def severity(self, place: Place, detector: str) -> Severity:
        """Return the severity of a detector's finding at a place."""
        return self.safety.get(f"{place}:{detector}", discover_detectors()[detector].severity[place])


def is_at_or_below_pointer(argument: str, pointer: str) -> bool:
    """Return whether the argument is the one that the pointer names, or lies below it."""
    return argument == pointer or argument.startswith(pointer.rstrip("/") + "/")


def argument_of(pointer: str) -> str:
    """Return a pointer without list indexes: /items/3/to becomes /items/to."""
    return "/".join(part for part in pointer.split("/") if not part.isdigit()) or "/"


STRANGE: tuple[Origin, ...] = ("untrusted_observation", "model")
SHIPPED = Policy(
    rules=(
        Rule(
            name="address-carries-data",
            decision="deny",
            mutating=None,
            kinds=("url",),
            origins=STRANGE,
            scope=("outside", "unnamed"),
            carries=True,
            reason="An address that the task does not name would carry away what was read.",
        ),
        Rule(
            name="strange-recipient",
            decision="deny",
            kinds=("recipient", "account", "url"),
            origins=STRANGE,
            scope=("outside", "unnamed"),
            chosen="model",
            reason="The task names no such recipient, account or address, and no trusted source gave it.",
        ),
        Rule(
            name="strange-command",
            decision="deny",
            kinds=("command",),
            origins=STRANGE,
            scope=("outside", "unnamed"),
            chosen="model",
            reason="A command that the task does not state is not carried out.",
        ),
        Rule(
            name="other-than-named",
            decision="deny",
            kinds=("amount", "path", "reference"),
            origins=STRANGE,
            scope=("outside",),
            sensitive=True,
            chosen="model",
            reason="The task names another amount, path or number than this one.",
        ),
        Rule(
            name="text-carries-data",
            decision="gate",
            mutating=None,
            origins=STRANGE,
            scope=("outside", "unnamed"),
            carries=True,
            reason="It would take what was read, or a stranger's address, out of the house.",
        ),
        Rule(
            name="unvouched",
            decision="gate",
            origins=STRANGE,
            sensitive=True,
            reason="Nobody trusted stands for where this value comes from.",
        ),
    )
)
"""What holds where a tenant has set nothing else (R-TOOL-17)."""


# -- comparing two policies


class WeakerCase(NamedTuple):
    """One case in which a policy is weaker than the one before it."""

    leaf: Leaf
    before: Decision
    after: Decision


def find_weaker_cases(before: Policy, after: Policy) -> tuple[WeakerCase, ...]:
    """Find every kind of case in which `after` is weaker than `before`, one example each.

    An empty result means that `after` is as strict or stricter everywhere. Names fall into finitely many
    classes, each matched by the same patterns, so checking one name of each class checks them all.
    """
    found: dict[tuple[str, str, Decision, Decision], WeakerCase] = {}
    for first, second, leaf in _enumerate_leaf_cases((before, after)):
        was: Decision = first.decision if first is not None else "allow"
        now: Decision = second.decision if second is not None else "allow"
        if RANK[now] < RANK[was]:
            key = (first.name if first else "", second.name if second else "", was, now)
            found.setdefault(key, WeakerCase(leaf, was, now))
    return tuple(found.values())


def is_weaker_policy(before: Policy, after: Policy) -> bool:
    """Return whether `after` is weaker than `before` in any case.

    A weaker policy needs the approval of a second person.
    """
    weaker_after = RANK[after.after_untrusted] < RANK[before.after_untrusted]
    return (
        weaker_after or bool(list_weakened_detectors(before, after)) or bool(find_weaker_cases(before, after))
    )


def list_weakened_detectors(before: Policy, after: Policy) -> tuple[str, ...]:
    """Return the places and detectors for which `after` has a lower severity than `before`."""
    rank = SEVERITIES.index
    return tuple(
        f"{place}:{name}"
        for name in discover_detectors()
        for place in PLACES
        if rank(after.severity(place, name)) < rank(before.severity(place, name))
    )


def _enumerate_leaf_cases(policies: tuple[Policy, Policy]) -> Iterable[tuple[Rule | None, Rule | None, Leaf]]:
    """Yield a leaf of each class, with the rule that decides it in either policy."""
    rules = [rule for policy in policies for rule in policy.rules]
    for tool, mutating in _enumerate_tool_classes(rules):
        first, second = ([r for r in p.rules if r.reaches(tool, mutating=mutating)] for p in policies)
        for leaf in _enumerate_leaf_classes(tool, mutating=mutating, rules=[*first, *second]):
            yield _find_first_rule(first, leaf), _find_first_rule(second, leaf), leaf


def _find_first_rule(rules: list[Rule], leaf: Leaf) -> Rule | None:
    return next((rule for rule in rules if rule.fits(leaf)), None)


def _enumerate_tool_classes(rules: list[Rule]) -> Iterable[tuple[str, bool]]:
    patterns = {tool for rule in rules for tool in rule.tools}
    named = sorted({p.removesuffix("*") + (_OTHER if p.endswith("*") else "") for p in patterns})
    both = list(product((*named, _OTHER), (True, False)))
    return _pick_class_representatives(both, rules, lambda rule, one: rule.reaches(one[0], mutating=one[1]))


def _enumerate_leaf_classes(tool: str, *, mutating: bool, rules: list[Rule]) -> Iterable[Leaf]:
    """Yield a leaf of each class that the rules distinguish."""
    pointers = [*sorted({one for rule in rules for one in rule.arguments}), f"/{_OTHER}"]
    yes_no = (True, False)
    for parts in product(
        _pick_class_representatives(
            pointers,
            rules,
            lambda rule, one: any(is_at_or_below_pointer(one, held) for held in rule.arguments),
        ),
        _pick_class_representatives(KINDS, rules, lambda rule, one: one in rule.kinds),
        _pick_class_representatives(yes_no, rules, lambda rule, one: rule.sensitive is one),
        _pick_class_representatives(ORIGINS, rules, lambda rule, one: one in rule.origins),
        _pick_class_representatives(STANDINGS, rules, lambda rule, one: one in rule.scope),
        _pick_class_representatives(CHOOSERS, rules, lambda rule, one: one == rule.chosen),
        _pick_class_representatives(yes_no, rules, lambda rule, one: rule.carries is one),
    ):
        yield Leaf(tool, mutating, *parts)


def _pick_class_representatives(
    values: Sequence[T], rules: list[Rule], holds: Callable[[Rule, T], bool]
) -> list[T]:
    """Return the first value of each class that the rules distinguish."""
    found: dict[tuple[bool, ...], T] = {}
    for value in values:
        found.setdefault(tuple([holds(rule, value) for rule in rules]), value)
    return list(found.values())
