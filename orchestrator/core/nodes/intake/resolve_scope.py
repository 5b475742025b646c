"""resolve_scope: who asks, what may they, is anything missing? (phases 2, 3 and 7)"""

from typing import Any, ClassVar

from orchestrator.core.common.argument_parsing import validate_against_schema
from orchestrator.core.common.frozen_model import FrozenModel
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.llm.prompt_builder import permitted_tools
from orchestrator.core.workflow.goal_inputs import merge_goal_inputs
from orchestrator.core.workflow.node_protocol import NodeContext, NodeResult, trace_event
from orchestrator.core.workflow.plain_node import PlainNode
from traces.core.events.phases import Phase
from traces.core.events.trace_events import PhaseNoted, PolicyDecided
from traces.core.integrity.chain import TraceEntry


class Config(FrozenModel):
    """`scopes` the submitting principal must hold."""

    scopes: tuple[str, ...] = ("submit",)


class ResolveScope(PlainNode):
    kind: ClassVar[str] = "resolve_scope"
    outcomes: ClassVar[tuple[str, ...]] = ("resolved", "missing_info", "denied")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.SCOPE_RESOLUTION)
    artifact: ClassVar[str] = "session security token"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[FrozenModel]] = Config

    def enter(self, view: NodeContext) -> NodeResult:
        """Check scopes and policy, then the inputs against the workflow's schema."""
        policy = self._policy(view)
        denied = [body for body in policy if body.decision == "deny"]
        said = [self._scope_said(view), *(trace_event(Phase.POLICY_CHECK, body) for body in policy)]
        if denied:
            return NodeResult(
                state=view.state.evolve(reason=denied[0].rule), outcome="denied", said=tuple(said)
            )
        given, state = self._resolve_inputs(view)
        fault = validate_against_schema(view.graph.spec.input_schema, given)
        if fault is not None:
            missing = state.evolve(asked=fault.missing, reason=fault.detail[:300])
            return NodeResult(state=missing, outcome="missing_info", said=tuple(said))
        said.append(self._tools_said(view))
        return NodeResult(state=state.evolve(asked=(), reason=""), outcome="resolved", said=tuple(said))

    def _resolve_inputs(self, view: NodeContext) -> tuple[dict[str, Any], RunState]:
        """The inputs, and the state with the intent that the submitter chose when the goal named several."""
        given, state = merge_goal_inputs(view.manifest.goal, view.state, view.desk), view.state
        if state.intent or "intent" in view.graph.spec.input_schema.get("properties", {}):
            return given, state
        chosen = given.pop("intent", None)
        return given, state.evolve(intent=chosen) if isinstance(chosen, str) else state

    def _policy(self, view: NodeContext) -> tuple[PolicyDecided, ...]:
        """The rules as data: each decision names its rule."""
        config: Config = view.node.config
        manifest, boundary = view.manifest, view.pins.boundary_digest
        lost = view.headroom.missing_scopes
        rules = [(f"scope:{s}", s in manifest.scopes and s not in lost) for s in config.scopes]
        rules.append(("tools_within_boundary", bool(permitted_tools(view)) or not view.graph.spec.tools))
        return tuple(
            PolicyDecided(rule=rule, decision="allow" if holds else "deny", boundary=boundary)
            for rule, holds in rules
        )

    def _scope_said(self, view: NodeContext) -> TraceEntry:
        body = PhaseNoted(artifact=self.artifact, detail=f"principal {view.manifest.principal}")
        return trace_event(Phase.SCOPE_RESOLUTION, body)

    def _tools_said(self, view: NodeContext) -> TraceEntry:
        names = ",".join(tool.name for tool in permitted_tools(view))
        return trace_event(
            Phase.TOOL_ELIGIBILITY, PhaseNoted(artifact="authorized tool list", detail=names[:1_000])
        )


KIND = ResolveScope()
