"""resolve_scope: who asks, what may they, is anything missing? (phases 2, 3 and 7)"""

from typing import Any, ClassVar

from orchestrator.core.common.argument_parsing import fits
from orchestrator.core.common.frozen_model import Value
from orchestrator.core.domain.run_state import State
from orchestrator.core.llm.prompt_builder import permitted_tools
from orchestrator.core.workflow.goal_inputs import inputs
from orchestrator.core.workflow.node_protocol import Step, View, say
from orchestrator.core.workflow.plain_node import Plain
from traces.core.events.phases import Phase
from traces.core.events.trace_events import PhaseNoted, PolicyDecided
from traces.core.integrity.chain import Said


class Config(Value):
    """`scopes` the submitting principal must hold."""

    scopes: tuple[str, ...] = ("submit",)


class ResolveScope(Plain):
    kind: ClassVar[str] = "resolve_scope"
    outcomes: ClassVar[tuple[str, ...]] = ("resolved", "missing_info", "denied")
    phases: ClassVar[dict[str, Phase]] = dict.fromkeys(outcomes, Phase.SCOPE_RESOLUTION)
    artifact: ClassVar[str] = "session security token"
    starts_work: ClassVar[bool] = True
    config: ClassVar[type[Value]] = Config

    def enter(self, view: View) -> Step:
        """Check scopes and policy, then the inputs against the workflow's schema."""
        policy = self._policy(view)
        denied = [body for body in policy if body.decision == "deny"]
        said = [self._scope_said(view), *(say(Phase.POLICY_CHECK, body) for body in policy)]
        if denied:
            return Step(state=view.state.evolve(reason=denied[0].rule), outcome="denied", said=tuple(said))
        given, state = self._settled(view)
        fault = fits(view.graph.spec.input_schema, given)
        if fault is not None:
            missing = state.evolve(asked=fault.missing, reason=fault.detail[:300])
            return Step(state=missing, outcome="missing_info", said=tuple(said))
        said.append(self._tools_said(view))
        return Step(state=state.evolve(asked=(), reason=""), outcome="resolved", said=tuple(said))

    def _settled(self, view: View) -> tuple[dict[str, Any], State]:
        """The inputs, and the state with the intent that the submitter chose when the goal named several."""
        given, state = inputs(view.manifest.goal, view.state, view.desk), view.state
        if state.intent or "intent" in view.graph.spec.input_schema.get("properties", {}):
            return given, state
        chosen = given.pop("intent", None)
        return given, state.evolve(intent=chosen) if isinstance(chosen, str) else state

    def _policy(self, view: View) -> tuple[PolicyDecided, ...]:
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

    def _scope_said(self, view: View) -> Said:
        body = PhaseNoted(artifact=self.artifact, detail=f"principal {view.manifest.principal}")
        return say(Phase.SCOPE_RESOLUTION, body)

    def _tools_said(self, view: View) -> Said:
        names = ",".join(tool.name for tool in permitted_tools(view))
        return say(Phase.TOOL_ELIGIBILITY, PhaseNoted(artifact="authorized tool list", detail=names[:1_000]))


KIND = ResolveScope()
