"""Evaluate the policy for one call, between permission and budget in the authorization chain.

The pinned version applies, together with the newest one if that differs: the stricter decision of the two
holds (R-TOOL-4, R-TOOL-17). A mutating tool that the model first requests after untrusted content was read
is an addition to the plan (R-TOOL-18).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from orchestrator.core.common.frozen_model import with_entry
from orchestrator.core.domain.run_state import Call, RunState
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.guardrails.draft_quotes import quoted_in
from orchestrator.core.guardrails.exfiltration import goes_unasked
from orchestrator.core.guardrails.taint_sources import DRAFT, Source, flatten_json_leaves
from orchestrator.core.guardrails.taint_tracking import TaintedLeaf, TaintTracker
from orchestrator.core.policy.provenance.value_kinds import kind_of
from orchestrator.core.policy.provenance.value_matching import words_of
from orchestrator.core.policy.rules import (
    ORIGINS,
    RANK,
    Decision,
    Leaf,
    Origin,
    Policy,
    argument_of,
    is_at_or_below_pointer,
)
from orchestrator.core.policy.task_scope import NAMED, Standing, TaskScope, match_task_scope
from orchestrator.core.workflow.node_protocol import NodeContext
from orchestrator.core.workflow.untrusted_inputs import has_untrusted_inputs

ADDED = "added-after-untrusted"
MOST_SENT = 200
_WORDS = {
    "untrusted_observation": "comes from untrusted output",
    "model": "comes from nowhere but the model",
    "trusted_fact": "comes from a trusted source",
    "goal": "stands in the goal",
    "plan": "stands in the workflow",
    "person": "was given by a person",
}
_STANDINGS: Mapping[Standing, str] = {
    "inside": "the task names it", "outside": "the task names another", "unnamed": "the task names none",
}  # fmt: skip


class _SeenLeaf(NamedTuple):
    """One leaf as a policy sees it.

    `ordinary` is why it is ordinary, or ""; `words` describe where it comes from.
    """

    pointer: str
    leaf: Leaf
    ordinary: str
    words: str


class Finding(NamedTuple):
    """One leaf that a rule gates or denies, with the sentence that states why.

    `ordinary`: every such task has a value like this: the task names it, the boundary trusts it, or it is
    the draft that the workflow had the model write. The decision applies all the same, without an alarm.
    """

    decision: Decision
    rule: str
    version: int
    origin: Origin
    sentence: str
    ordinary: bool = False


class PolicyDecision(NamedTuple):
    """The policy's decision on a call.

    `asked` False: no rule can apply to its tool, and nothing was looked up. `findings` are sorted strictest
    first.
    """

    asked: bool
    decision: Decision = "allow"
    findings: tuple[Finding, ...] = ()

    @property
    def rule(self) -> str:
        """Return the name of the rule that decided, with its policy version."""
        if not self.findings:
            return "no_rule"
        return f"policy:{self.findings[0].version}:{self.findings[0].rule}"


NOT_EVALUATED = PolicyDecision(asked=False)


def evaluate_policy(view: NodeContext, call: Call, spec: ToolSpec) -> PolicyDecision:
    """Evaluate the pinned policy, and the newest one if the commit has it."""
    if not any(policy.reaches(spec.name, mutating=spec.is_mutating) for policy in view.policies):
        return NOT_EVALUATED
    found: list[Finding] = []
    seen = _trace_argument_leaves(view, call, spec)
    for policy in view.policies:
        found.extend(finding for one in seen if (finding := _of_leaf(policy, one)))
        if (added := _find_unplanned_change(view, call, spec, policy)) is not None:
            found.append(added)
    found.sort(key=lambda finding: (-RANK[finding.decision], -ORIGINS.index(finding.origin)))
    decision: Decision = found[0].decision if found else "allow"
    return PolicyDecision(True, decision, tuple(dict.fromkeys(found)))


def has_read_untrusted(view: NodeContext, state: RunState) -> bool:
    """Return whether the run has read untrusted content: from a tool, or in an untrusted input."""
    facts = any(fact.trust == "untrusted" for fact in state.facts.values())
    failed = any(failure.observation is not None for failure in state.failures)
    return facts or failed or has_untrusted_inputs(view)


def with_planned_calls(view: NodeContext, state: RunState, calls: Iterable[Call]) -> RunState:
    """Return the state with the mutating calls of a new reply, if nothing untrusted was read before.

    A tool that a reply only names is not yet part of the plan: a tool is foreseen once a call of it was
    found eligible.
    """
    specs = ((call.id, view.pins.by_name.get(call.tool)) for call in calls)
    planned = tuple([call for call, spec in specs if spec is not None and spec.is_mutating])
    if planned and has_read_untrusted(view, state):
        planned = ()
    return state if planned == state.planned else state.evolve(planned=planned)


def with_foreseen(state: RunState, tools: tuple[str, ...]) -> RunState:
    """Return the state with these tools as part of the plan."""
    fresh = [tool for tool in dict.fromkeys(tools) if tool not in state.foreseen]
    return state.evolve(foreseen=(*state.foreseen, *fresh)) if fresh else state


def with_sent(view: NodeContext, state: RunState, call: Call, spec: ToolSpec) -> RunState:
    """Return the state with the arguments that a model's unapproved call puts into an address.

    They are kept so that a value that is split over several calls can be joined again.
    """
    if call.by != "model" or call.attempt > 1 or len(state.sent) >= MOST_SENT:
        return state
    if not goes_unasked(view, spec):
        return state
    value = view.desk.json(call.arguments or "")
    addressed = any(kind_of(pointer, leaf) == "url" for pointer, leaf in flatten_json_leaves(value, ""))
    to = spec.remote.origin if spec.remote is not None else ""
    if not (addressed or to) or call.arguments is None:
        return state
    return state.evolve(sent=with_entry(state.sent, f"{len(state.sent):03d} {to}".strip(), call.arguments))


def _trace_argument_leaves(view: NodeContext, call: Call, spec: ToolSpec) -> list[_SeenLeaf]:
    """Return each leaf as a policy sees it.

    Raises: ContentMissing.
    """
    value = view.desk.json(call.arguments or "")
    if not spec.is_mutating and not _has_address(value) and spec.remote is None:
        # Nothing in such a call leaves for a server outside (G3).
        return []
    tracer = TaintTracker(view, call)
    traced, scope = tracer.trace(value), tracer.scope
    found = []
    for pointer, value_there in flatten_json_leaves(value, ""):
        one = traced[pointer]
        leaf = _build_policy_leaf(call, spec, pointer, one, _match_leaf_scope(view, one, value_there, scope))
        quoted = _find_quoted_source(tracer, one, value_there)
        ordinary = "" if quoted else _ordinary_because(pointer, one, leaf)
        found.append(_SeenLeaf(pointer, leaf, ordinary, _describe_value_source(one.source, quoted)))
    return found


def _find_quoted_source(tracer: TaintTracker, traced: TaintedLeaf, value: Any) -> Source | None:
    """Return the untrusted source that a draft quotes, or None."""
    if traced.source != DRAFT or traced.vouched:
        return None
    read = [(place.source, place.text) for place in tracer.places]
    return quoted_in(words_of(value), tracer.goal, read, tracer.vouches)


def _describe_value_source(source: Source, quoted: Source | None) -> str:
    """Describe where a value comes from."""
    if quoted is not None:
        return f"is a draft that quotes {quoted.reference}, which is untrusted"
    return "comes from an untrusted input" if source.of_input else _WORDS[source.origin]


def _ordinary_because(pointer: str, traced: TaintedLeaf, leaf: Leaf) -> str:
    """Explain why a value is ordinary, or return "".

    An address or path has to be named as a whole: naming a host or folder does not make everything in it
    ordinary.
    """
    if leaf.carries:
        return ""
    if traced.vouched:
        return f"{pointer} comes from a result that the boundary trusts for it."
    if leaf.standing == "inside" and (traced.said or leaf.kind not in ("url", "path")):
        return f"{pointer} is named by the task."
    if traced.source == DRAFT and leaf.kind == "text":
        return f"{pointer} is the text that the workflow had the model write."
    return ""


def _build_policy_leaf(
    call: Call, spec: ToolSpec, pointer: str, traced: TaintedLeaf, standing: Standing
) -> Leaf:
    return Leaf(
        tool=spec.name,
        mutating=spec.is_mutating,
        argument=argument_of(pointer),
        kind=traced.kind,
        sensitive=is_sensitive(spec, pointer),
        origin=traced.source.origin,
        standing=standing,
        chosen="model" if call.by == "model" else "plan",
        carries=traced.carries,
    )


def _has_address(value: Any) -> bool:
    """Return whether a read-only call contains an address: nothing else in it can carry content out."""
    found: bool = "://" in str(value) or "www." in str(value)
    return found


def _match_leaf_scope(view: NodeContext, traced: TaintedLeaf, leaf: Any, scope: TaskScope) -> Standing:
    if traced.vouched:
        return "inside"
    return match_task_scope(traced.kind, leaf, scope, view.pins.boundary.scope, said=traced.said)


def is_sensitive(spec: ToolSpec, pointer: str) -> bool:
    """Return whether the tool declares the argument sensitive.

    An undeclared argument also counts, if the tool is remote and every argument it declares is sensitive.
    """
    if any(is_at_or_below_pointer(pointer, one) for one in spec.sensitive):
        return True
    properties = spec.input_schema.get("properties")
    if spec.remote is None or not isinstance(properties, dict) or len(spec.sensitive) < len(properties):
        return False
    return bool(spec.sensitive)


def _of_leaf(policy: Policy, seen: _SeenLeaf) -> Finding | None:
    pointer, leaf, ordinary, words = seen
    rule = policy.rule_for(leaf)
    if rule is None or rule.decision == "allow":
        return None
    if ordinary and rule.decision == "gate":
        return Finding(rule.decision, rule.name, policy.version, leaf.origin, ordinary, True)
    named = f"; {_STANDINGS[leaf.standing]}" if leaf.kind in NAMED else ""
    said = f"{pointer or 'The argument'} {words}{named}. {rule.reason}"
    return Finding(rule.decision, rule.name, policy.version, leaf.origin, said)


def _find_unplanned_change(view: NodeContext, call: Call, spec: ToolSpec, policy: Policy) -> Finding | None:
    """Return the finding for an addition to the plan.

    That is a change that was not foreseen when untrusted content was read.
    """
    if policy.after_untrusted == "allow" or call.by != "model" or call.edited or not spec.is_mutating:
        return None
    planned = call.id in view.state.planned or spec.name in view.state.foreseen
    if planned or view.pins.boundary.scope.plans(spec.name) or not has_read_untrusted(view, view.state):
        return None
    said = f"The model asks for {spec.name} only since it has read something untrusted."
    return Finding(policy.after_untrusted, ADDED, policy.version, "untrusted_observation", said)
