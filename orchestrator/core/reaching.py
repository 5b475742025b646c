"""The risk class of one exact call: a tool that only reads is `network`, and gated, where its arguments lead
beyond the list that it is pinned with (R-TOOL-2, G3).
"""

from orchestrator.core.inputs import pointed
from orchestrator.core.outside import admits
from orchestrator.core.state import Call
from orchestrator.core.step import View
from orchestrator.core.tool import Risk, ToolSpec


def risk_of_call(view: View, spec: ToolSpec, call: Call) -> Risk:
    """The class in force for this call: the tool's, or `network` for an address that is not on its list."""
    risk = view.risk_of(spec)
    return Risk.NETWORK if risk.rank < Risk.NETWORK.rank and leads_away(view, spec, call) else risk


def gates_call(view: View, spec: ToolSpec, call: Call) -> bool:
    """Whether this call needs a person's approval."""
    return view.needs_gate(spec) or leads_away(view, spec, call)


def leads_away(view: View, spec: ToolSpec, call: Call) -> bool:
    """Whether the call goes to an address that is not on the list of its tool's version."""
    if spec.egress is None or call.arguments is None:
        return False
    url = pointed(view.desk.json(call.arguments), spec.egress.argument)
    return not (isinstance(url, str) and admits(spec.egress.allow, url))
