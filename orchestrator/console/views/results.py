"""A run's result as its page shows it: answer and facts first, their proof folded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.core.guardrails.untrusted_facts import UntrustedBasis, resting_on
from orchestrator.core.readmodel.reason_texts import left_in_words

PROOF: Final = ("provenance", "checkpoint", "rests_on_untrusted")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactShown:
    """A fact with its values, the tool that reported it, and whether that source is trusted."""

    name: str
    values: Mapping[str, Any]
    tool: str
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeedShown:
    """A side effect of the run: its present state if it was undone, else the reason why it was not."""

    call: str
    tool: str
    undone: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenShown:
    """A change whose outcome is unknown: no result confirms it. `error` is what was returned instead."""

    call: str
    tool: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run in its parts.

    `text` is the answer if it is a string, else `answer` holds it. `resting` are the untrusted facts on which
    the answer rests. `whole` is the document as stored in the trace, hashes included.
    """

    text: str
    answer: Any
    facts: tuple[FactShown, ...]
    deeds: tuple[DeedShown, ...]
    opened: tuple[OpenShown, ...]
    resting: tuple[UntrustedBasis, ...]
    whole: Mapping[str, Any]


def outcome_of(document: Mapping[str, Any] | None) -> Outcome | None:
    """Split a result or report into its parts; None if there is none, or if its content was erased."""
    if not document or document.get("erased"):
        return None
    output, facts = document.get("output"), document.get("facts")
    named = facts.items() if isinstance(facts, dict) else ()
    rest = {name: value for name, value in document.items() if name not in ("output", "facts", *PROOF)}
    proof = {name: document[name] for name in PROOF if name in document}
    return Outcome(
        text=output if isinstance(output, str) else "",
        answer=None if isinstance(output, str) else output,
        facts=tuple(_build_fact(name, said) for name, said in named if isinstance(said, dict)),
        deeds=_list_side_effects(document),
        opened=_list_open_effects(document),
        resting=resting_on(document),
        whole={**rest, "output": output, "facts": facts, **proof},
    )


def _list_side_effects(document: Mapping[str, Any]) -> tuple[DeedShown, ...]:
    """List the side effects that were not undone, which people have to handle, then the undone ones."""
    left = [
        (one, False, left_in_words(str(one.get("why", ""))))
        for one in _get_dict_items(document, "not_undone")
    ]
    back = [(one, True, str(one.get("now", ""))) for one in _get_dict_items(document, "undone")]
    return tuple(
        DeedShown(call=str(one.get("call", "")), tool=str(one.get("tool", "")), undone=undone, words=words)
        for one, undone, words in (*left, *back)
    )


def _list_open_effects(document: Mapping[str, Any]) -> tuple[OpenShown, ...]:
    return tuple(
        OpenShown(**{name: str(one.get(name, "")) for name in ("call", "tool", "error")})
        for one in _get_dict_items(document, "open_effects")
    )


def _get_dict_items(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = document.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _build_fact(name: str, said: Mapping[str, Any]) -> FactShown:
    values = said.get("values")
    return FactShown(
        name=name, values=values if isinstance(values, dict) else {}, tool=str(said.get("tool", "")),
        trusted=said.get("trust") == "trusted",
    )  # fmt: skip
