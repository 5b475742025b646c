"""Find what a draft of the workflow's model took from untrusted text (R-TOOL-17).

A draft is ordinary on a card unless it quotes an input that its workflow declares untrusted, or contains an
address from untrusted text that neither the goal names nor the boundary trusts.
"""

from collections.abc import Callable, Iterable

from orchestrator.core.guardrails.exfiltration import ObservedText, addresses_in, text_carries
from orchestrator.core.guardrails.taint_sources import Source
from orchestrator.core.policy.provenance.value_kinds import EMAIL
from orchestrator.core.policy.provenance.value_matching import (
    SearchableText,
    is_stated_in_text,
    may_come_from_text,
)


def quoted_in(
    text: str,
    goal: SearchableText,
    places: Iterable[tuple[Source, SearchableText]],
    vouched: Callable[[str], bool],
) -> Source | None:
    """Return the first untrusted place that a draft quotes, or None.

    `vouched` returns whether the boundary trusts a result for a value.
    """
    found = (*addresses_in(text, bare=True), *EMAIL.findall(text))
    addresses = [one for one in dict.fromkeys(found) if not is_stated_in_text(one, goal) and not vouched(one)]
    for source, read in places:
        if source.origin != "untrusted_observation":
            continue
        if any(may_come_from_text(one, read) for one in addresses):
            return source
        if source.of_input and text_carries(text, ObservedText([read], goal)):
            return source
    return None
