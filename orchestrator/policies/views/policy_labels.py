"""A policy's rules in plain words, for its pages."""

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.core.policy.rules import Rule, WeakerCase

DECISIONS: Final = {
    "allow": "let it pass",
    "gate": "ask a person",
    "deny": "deny it",
}
KIND_WORDS: Final[Mapping[str, str]] = {
    "recipient": "a recipient", "account": "an account", "url": "an address on the web",
    "command": "a command", "path": "a file", "amount": "an amount", "reference": "a number or id",
    "text": "a text", "other": "anything else",
}  # fmt: skip
ORIGIN_WORDS: Final[Mapping[str, str]] = {
    "goal": "the goal", "plan": "the workflow", "person": "a person", "trusted_fact": "a trusted source",
    "model": "nowhere but the model", "untrusted_observation": "untrusted output",
}  # fmt: skip
STANDING_WORDS: Final[Mapping[str, str]] = {
    "inside": "names it", "unnamed": "names none of its kind", "outside": "names another",
}  # fmt: skip


def rule_in_words(rule: Rule) -> str:
    """When a rule fits and what then, in one sentence."""
    what = _join_with_or([KIND_WORDS[kind] for kind in rule.kinds]) or "any argument"
    if rule.arguments:
        what += f" at {_join_with_or(rule.arguments)}"
    if rule.sensitive is not None:
        what += " that is sensitive" if rule.sensitive else " that is not sensitive"
    of = {True: "a tool that changes something", False: "a tool that only reads", None: "any tool"}[
        rule.mutating
    ]
    if rule.tools:
        of = _join_with_or(rule.tools) + {True: " (changes)", False: " (reads)", None: ""}[rule.mutating]
    said = [f"{what[0].upper()}{what[1:]} of {of}"]
    if rule.origins:
        said.append(f"that comes from {_join_with_or([ORIGIN_WORDS[origin] for origin in rule.origins])}")
    if rule.scope:
        said.append(f"where the task {_join_with_or([STANDING_WORDS[one] for one in rule.scope])}")
    if rule.chosen is not None:
        said.append("and that the model chose" if rule.chosen == "model" else "and that the workflow chose")
    if rule.carries is not None:
        said.append("and takes away what was read" if rule.carries else "and takes nothing away")
    return f"{' '.join(said)}: {DECISIONS[rule.decision]}."


def case_in_words(case: WeakerCase) -> str:
    """A case in which a policy would be weaker."""
    leaf = case.leaf
    tool = "a tool" if leaf.tool.endswith("zz_other") else leaf.tool
    where = "" if leaf.argument.endswith("zz_other") else f" at {leaf.argument}"
    does = "changes something" if leaf.mutating else "only reads"
    return (
        f"{KIND_WORDS[leaf.kind][0].upper()}{KIND_WORDS[leaf.kind][1:]}{where} of {tool} that {does}, from "
        f"{ORIGIN_WORDS[leaf.origin]}, where the task {STANDING_WORDS[leaf.standing]}: "
        f"{DECISIONS[case.before]} so far, {DECISIONS[case.after]} then."
    )


def _join_with_or(words: Iterable[str]) -> str:
    held = list(words)
    return held[0] if len(held) == 1 else f"{', '.join(held[:-1])} or {held[-1]}" if held else ""
