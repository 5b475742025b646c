"""Compute the effective risk class of one exact call.

A tool below `network` counts as `network`, and is gated, if its arguments lead outside the list that it is
pinned with (R-TOOL-2, G3).
"""

from typing import Any

from orchestrator.core.domain.run_state import Call
from orchestrator.core.domain.tool_spec import Egress, Risk, ToolSpec
from orchestrator.core.guardrails.exfiltration import MOST_ADDRESSES, addresses_in, goes_unasked
from orchestrator.core.guardrails.taint_sources import flatten_json_leaves
from orchestrator.core.policy.provenance.value_kinds import kind_of
from orchestrator.core.policy.provenance.value_matching import words_of
from orchestrator.core.policy.rules import argument_of, is_at_or_below_pointer
from orchestrator.core.tools.destinations import is_url_allowed, list_allowed_hosts
from orchestrator.core.workflow.goal_inputs import resolve_pointer
from orchestrator.core.workflow.node_protocol import NodeContext

ANYWHERE = Egress(argument="")


def risk_of_call(view: NodeContext, spec: ToolSpec, call: Call) -> Risk:
    """Return the class in force for this call: the tool's, or `network` for an address not on its list."""
    risk = view.risk_of(spec)
    return Risk.NETWORK if risk.rank < Risk.NETWORK.rank and leads_away(view, spec, call) else risk


def risk_of_edit(spec: ToolSpec, value: Any) -> Risk:
    """Return the risk class that approving these arguments takes.

    It is `network` if the arguments lead off the tool's list, as the run itself will find.
    """
    unasked = not spec.is_mutating or not spec.needs_gate
    away = (spec.remote is None or unasked) and named_beyond(spec, value)
    return Risk.NETWORK if away and spec.risk.rank < Risk.NETWORK.rank else spec.risk


def gates_call(view: NodeContext, spec: ToolSpec, call: Call) -> bool:
    """Return whether this call needs a person's approval."""
    return view.needs_gate(spec) or leads_away(view, spec, call)


def leads_away(view: NodeContext, spec: ToolSpec, call: Call) -> bool:
    """Return whether the call names an address that is not on the list of its tool's version.

    Any argument of an outside server's tool that is called without approval may be an address, because it
    is unknown what the server does with the argument.
    """
    if call.arguments is None:
        return False
    if spec.remote is not None and not goes_unasked(view, spec):
        return False
    return named_beyond(spec, view.desk.json(call.arguments))


def named_beyond(spec: ToolSpec, value: Any) -> bool:
    """Return whether the arguments name an address that is not on the tool's list."""
    if spec.remote is not None:
        egress = spec.egress or ANYWHERE
        return any(
            _has_unlisted_address(egress, pointer, leaf) for pointer, leaf in flatten_json_leaves(value, "")
        )
    if spec.egress is None:
        return False
    url = resolve_pointer(value, spec.egress.argument)
    return not (isinstance(url, str) and is_url_allowed(spec.egress.allow, url))


def _has_unlisted_address(egress: Egress, pointer: str, leaf: Any) -> bool:
    """Return whether a leaf is, or contains, an address that is not on the list."""
    text = words_of(leaf).strip()
    if not text:
        return False
    marked = any(is_at_or_below_pointer(argument_of(pointer), one) for one in egress.marked)
    told = marked or kind_of(pointer if egress.named else "", leaf) == "url"
    if not told:
        within = addresses_in(text)
        return len(within) > MOST_ADDRESSES or any(not is_url_allowed(egress.allow, url) for url in within)
    return not (is_url_allowed(egress.allow, text) or text.casefold() in list_allowed_hosts(egress.allow))
