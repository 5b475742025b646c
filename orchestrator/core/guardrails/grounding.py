"""Find the claims of an answer without evidence: figures, citations, effects (R-LOOP-6, R-LOOP-31).

Deterministic: figures and citations are matched against committed facts, the payloads behind them, and the
goal.
"""

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from orchestrator.core.domain.run_state import Fact
from orchestrator.core.workflow.goal_inputs import merge_goal_inputs
from orchestrator.core.workflow.node_protocol import NodeContext
from traces.core.canonical import canonical_outside

FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
CITATION = re.compile(r"\[([a-z][a-z0-9_]{0,40})\]")
LIST_MARK = re.compile(r"(?m)^\s*\d+[.)]\s")
READ = 20_000


def find_ungrounded_claims(view: NodeContext, text: str, *, figures: bool) -> list[str]:
    """Return every claim without evidence, one sentence each; empty if there is none."""
    found = _find_invalid_citations(view, text) + _find_unverified_effects(view, text)
    return found + (_find_ungrounded_figures(view, text) if figures else [])


def _find_invalid_citations(view: NodeContext, text: str) -> list[str]:
    cited = dict.fromkeys(CITATION.findall(text))
    return [f"[{name}] is no committed fact" for name in cited if name not in view.state.facts]


def _find_unverified_effects(view: NodeContext, text: str) -> list[str]:
    """Return the effects that the answer claims without a fact that confirms them."""
    done = {fact.tool for fact in view.state.facts.values()}
    lowered = text.casefold()
    return [
        f"the answer says {word!r}, but {tool.name} was never verified"
        for tool in view.pins.tools
        if tool.name not in done
        for word in tool.claims
        if re.search(rf"\b{re.escape(word.casefold())}\b", lowered)
    ]


def loose_figures(view: NodeContext, text: str, facts: Iterable[Fact]) -> list[str]:
    """Return the figures of `text` that are neither in the goal nor in the observations behind `facts`."""
    claimed = dict.fromkeys(filter(None, map(_normalize_number, FIGURE.findall(LIST_MARK.sub(" ", text)))))
    if not claimed:
        return []
    known = _collect_known_figures(view, tuple(facts))
    return [figure for figure in claimed if figure not in known]


def _find_ungrounded_figures(view: NodeContext, text: str) -> list[str]:
    loose = loose_figures(view, text, view.state.facts.values())
    return [f"the figure {figure} stands in no fact" for figure in loose]


def _collect_known_figures(view: NodeContext, facts: tuple[Fact, ...]) -> dict[str, None]:
    """Return every figure of the goal, its inputs and the observations behind the facts."""
    view.desk.require(fact.digest for fact in facts)
    goal = view.manifest.goal
    texts = [
        goal.objective,
        *goal.constraints,
        goal.done_condition,
        goal.validation_method,
        *goal.stop_rules,
        canonical_outside(merge_goal_inputs(goal, view.state, view.desk)).decode(),
    ]
    texts.extend(view.desk.text(fact.digest, READ) for fact in facts)
    return dict.fromkeys(filter(None, (_normalize_number(f) for text in texts for f in FIGURE.findall(text))))


def _normalize_number(text: str) -> str | None:
    """Return the canonical form of a number: 1,250.50 and 1250.5 are the same."""
    try:
        return f"{Decimal(text.replace(',', '')).normalize():f}"
    except InvalidOperation:
        return None
