"""Authorize one call: eight questions in a fixed order, each answer recorded (R-TOOL-5).

registered → arguments → permitted → provenance → budget → unsettled → risk → approval. The decision names
its rule and the boundary version.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Literal

from orchestrator.core.accounting.effect_cost import (
    compute_run_reserve,
    find_budget_shortfall,
    is_memory_write,
)
from orchestrator.core.accounting.side_effects import is_tracked, undo_room
from orchestrator.core.calls.authorization_result import Authorization, CallVerdict
from orchestrator.core.calls.effective_risk import gates_call, leads_away, risk_of_call
from orchestrator.core.calls.open_effects import action_key, asks_first
from orchestrator.core.calls.sealed_arguments import is_entrusted, validate_sealed_references
from orchestrator.core.calls.tool_selection import find_cheaper_tool, find_substitute_tool
from orchestrator.core.common.argument_parsing import (
    Arguments,
    MalformedArguments,
    parse_arguments,
    validate_against_schema,
    validate_no_redactions,
)
from orchestrator.core.common.name_patterns import is_listed
from orchestrator.core.common.sliding_window import free_at
from orchestrator.core.domain.memory_gate import refused_by_boundary
from orchestrator.core.domain.run_events import Headroom
from orchestrator.core.domain.run_state import Call
from orchestrator.core.domain.tool_spec import Risk, ToolSpec
from orchestrator.core.guardrails.policy_evaluation import NOT_EVALUATED, PolicyDecision, evaluate_policy
from orchestrator.core.policy.rules import Decision
from orchestrator.core.tools.isolation import find_missing_dependency, refused_apart
from orchestrator.core.tools.readiness import left_out
from orchestrator.core.workflow.node_protocol import NodeContext, RefusedEffect, trace_event
from traces.core.canonical import compute_digest
from traces.core.events.phases import Phase
from traces.core.events.trace_events import BreakerTripped, CallChecked, PlanRepaired
from traces.core.integrity.chain import TraceEntry

DECIDED: dict[Decision, Literal["allow", "approval_required", "deny"]] = {
    "allow": "allow", "gate": "approval_required", "deny": "deny",
}  # fmt: skip


class CallAuthorizer:
    """The questions asked of one call, with the trace entries of the answers."""

    def __init__(self, view: NodeContext, call: Call, *, first: bool) -> None:
        self.view = view
        self.call = call
        self.first = first
        self.said: list[TraceEntry] = []
        self.spec: ToolSpec | None = None
        self.ruling: PolicyDecision = NOT_EVALUATED

    def ask(self) -> Authorization:
        """Ask the questions in order until one of them is answered with no."""
        questions = (
            self.deny_unregistered, self.arguments, self.deny_unpermitted, self.provenance, self.budget,
            self.hold_unsettled, self.risk,
        )  # fmt: skip
        for question in questions:
            answer = question()
            if answer is not None:
                return answer
        return self._end("eligible", "")

    def still(self) -> Authorization | None:
        """Check again, before another attempt, a call that was found eligible.

        Returns None, or the refusal for a stop, a raised class, a scope or a policy that changed meanwhile.
        """
        self.spec = spec = self.view.pins.by_name[self.call.tool]
        for rule, test in _RULES:
            detail = test(self) if rule in MAY_CHANGE else None
            if detail is not None:
                self._note("permitted", "deny", rule, detail)
                return self._end("denied", detail)
        if (denied := self.provenance()) is not None:
            return denied
        gated = self.ruling.decision == "gate" or gates_call(self.view, spec, self.call)
        return self.risk() if gated and self.call.grant is None else None

    # -- the questions
    # -------------------------------------------------------------------------------------------

    def deny_unregistered(self) -> Authorization | None:
        """Check that the pinned registry has the tool and that this workflow names it."""
        self._repair_tool()
        spec = self.view.pins.by_name.get(self.call.tool)
        if spec is None or not is_listed(self.view.graph.spec.tools, self.call.tool):
            if self.call.tool in self.view.pins.unpriced:
                self._note("registered", "deny", "price_unknown")
                detail = f"nobody has said what a call of {self.call.tool} costs, and policy refuses that"
                return self._end("unregistered", detail)
            self._note("registered", "deny", "not_in_registry")
            return self._end("unregistered", f"there is no tool called {self.call.tool[:80]!r}")
        self.spec = spec
        self._note("registered", "allow", f"registry:{self.view.pins.registry_digest[:12]}")
        return None

    def _repair_tool(self) -> None:
        """Replace a tool that cannot be reached by an equivalent, and record the replacement (R-TOOL-1)."""
        other = find_substitute_tool(self.view, self.call)
        if other is None:
            return
        body = PlanRepaired(call=self.call.id, tool=self.call.tool, by=other.name, reason="unavailable")
        self.said.append(trace_event(Phase.TOOL_ELIGIBILITY, body))
        self.call = self.call.evolve(tool=other.name)

    def arguments(self) -> Authorization | None:
        """Check that the arguments parse, validate and normalise."""
        assert self.spec is not None
        parsed = self._parse_call_arguments()
        if isinstance(parsed, Arguments):
            fault = self._unsendable(self.spec, parsed) or validate_against_schema(
                self.spec.input_schema, parsed.value
            )
            if fault is None:
                body = self.view.desk.put(parsed.body)
                self.call = self.call.evolve(
                    arguments=body, argument_digest=compute_digest("arguments", parsed.body)
                )
                self._note("arguments", "allow", "schema")
                return None
            parsed = fault
        self._note("arguments", "deny", "schema", parsed.detail)
        verdict: CallVerdict = "missing_info" if parsed.missing and self.call.by != "model" else "malformed"
        return self._end(verdict, parsed.detail, missing=parsed.missing)

    def deny_unpermitted(self) -> Authorization | None:
        """Check that this principal, tenant and boundary may call the tool now."""
        assert self.spec is not None
        for rule, test in _RULES:
            detail = test(self)
            if detail is not None:
                self._note("permitted", "deny", rule, detail)
                return self._end("denied", detail, unauthorized=rule in UNAUTHORIZED)
        self._note("permitted", "allow", "boundary_allow_list")
        return None

    def provenance(self) -> Authorization | None:
        """Evaluate the policy on the origin of the call's values (R-TOOL-17)."""
        assert self.spec is not None
        self.ruling = evaluate_policy(self.view, self.call, self.spec)
        if not self.ruling.asked or not (self.spec.is_mutating or self.ruling.findings):
            return None
        detail = self.ruling.findings[0].sentence if self.ruling.findings else ""
        decision = DECIDED[self.ruling.decision]
        self._note("provenance", decision, self.ruling.rule, detail)
        if decision != "deny":
            return None
        return self._end("denied", f"{detail} ({self.ruling.rule})", unauthorized=True)

    def budget(self) -> Authorization | None:
        """Check that enough is left of every dimension, and that the tool's rate allows the call."""
        assert self.spec is not None
        granted = self.call.grant is not None or self.is_gated()
        reserve = compute_run_reserve(self.spec, granted=granted, step=self.first)
        # No action is begun that the run could not afford to undo (R-TOOL-15).
        back = undo_room(self.view.pins, self.spec) if is_tracked(self.spec) else {}
        refused = find_budget_shortfall(self.view.state, (reserve, back), self.view.headroom)
        if refused is None:
            return self._rate(self.spec)
        self._note("budget", "deny", refused.dimension, f"wanted {refused.wanted}, left {refused.left}")
        return self._end("over_budget", f"the budget for {refused.dimension} is used up", refused=refused)

    def _rate(self, spec: ToolSpec) -> Authorization | None:
        """Check the second half of `budget`: the tool's calls in the last minute of this run."""
        again = free_at(self.view.state.rates, spec.name, spec.rate_per_minute, self.view.at)
        if again is None:
            self._note("budget", "allow", "vector")
            return None
        detail = (
            f"{spec.name} takes {spec.rate_per_minute} calls a minute; "
            f"it may be called again at {again.isoformat()}"
        )
        self._note("budget", "deny", "rate_limit", detail)
        return self._end("denied", detail)

    def hold_unsettled(self) -> Authorization | None:
        """Check whether an open earlier call must be settled first; until then none is sent or approved."""
        if not asks_first(self.view, self.call):
            return None
        self._note("approval", "approval_required", "open_effect", "an earlier call may have done it")
        return self._end("eligible", "")

    def risk(self) -> Authorization | None:
        """Check whether the risk class needs a person's approval, and whether this exact call has one."""
        assert self.spec is not None
        if not self.is_gated():
            if self.spec.isolated:
                self._note("risk", "sandbox", "boundary_sandbox", "called in isolation alone")
            else:
                self._note("risk", "allow", self.spec.risk.value)
            self._note("approval", "allow", "not_required")
            return None
        risk = risk_of_call(self.view, self.spec, self.call)
        raised = "" if risk is self.spec.risk else f"raised from {self.spec.risk.value} by an admin"
        if leads_away(self.view, self.spec, self.call):
            raised = "the address is not on the list"
        elif self.ruling.decision == "gate" and not self.view.needs_gate(self.spec):
            raised = f"asked for by {self.ruling.rule}"
        self._note("risk", "approval_required", risk.value, raised)
        grant = self.call.grant
        if grant is not None and grant.argument_digest == self.call.argument_digest:
            if grant.request not in self.view.headroom.void:
                self._note("approval", "allow", "grant", grant.request)
                return None
            self._note("approval", "approval_required", "grant_void", self.view.headroom.void[grant.request])
            self.call = self.call.evolve(grant=None)
        else:
            self._note("approval", "approval_required", "no_grant")
        tripped = BreakerTripped(breaker="privileged_action", reason=risk.value, subject=self.call.tool)
        self.said.append(trace_event(Phase.TOOL_ELIGIBILITY, tripped))
        return self._end("needs_approval", "a person must approve this call")

    def is_gated(self) -> bool:
        """Return whether the call needs a grant, because of its tool, its values or the run's state."""
        assert self.spec is not None
        if self.view.state.guarded and self.spec.is_mutating:
            return True
        if self.ruling.decision == "gate" or gates_call(self.view, self.spec, self.call):
            return True
        if is_entrusted(self.view, self.call):
            return True
        if is_memory_write(self.spec):
            return False
        free = self.view.state.left("side_effects")
        return (
            self.spec.is_mutating and free is not None and free <= 0 and self.spec.risk is not Risk.READ_ONLY
        )

    # -- recording
    # -----------------------------------------------------------------------------------------

    def _parse_call_arguments(self) -> Arguments | MalformedArguments:
        return parse_arguments(self.view.desk.read(self.call.arguments or self.call.raw))

    def _unsendable(self, spec: ToolSpec, parsed: Arguments) -> MalformedArguments | None:
        kept = is_memory_write(spec)
        return validate_no_redactions(parsed.value) or validate_sealed_references(
            self.view.desk.find, tool=spec.name, by=self.call.by, value=parsed.value, remembered=kept
        )

    def _note(
        self,
        step: Literal["registered", "arguments", "permitted", "provenance", "budget", "risk", "approval"],
        decision: Literal["allow", "sandbox", "approval_required", "deny"],
        rule: str,
        detail: str = "",
    ) -> None:
        body = CallChecked(
            call=self.call.id,
            step=step,
            decision=decision,
            rule=rule,
            boundary=self.view.pins.boundary_digest,
            detail=detail[:300],
        )
        self.said.append(trace_event(Phase.TOOL_ELIGIBILITY, body))

    def _end(
        self,
        verdict: CallVerdict,
        detail: str,
        *,
        refused: RefusedEffect | None = None,
        missing: tuple[str, ...] = (),
        unauthorized: bool = False,
    ) -> Authorization:
        return Authorization(
            call=self.call,
            verdict=verdict,
            detail=detail,
            said=tuple(self.said),
            spec=self.spec,
            refused=refused,
            missing=missing,
            unauthorized=unauthorized,
        )


# -- the rules of `permitted`, in order
# ---------------------------------------------------------------------------


def _refuse_stopped_tool(chain: CallAuthorizer) -> str | None:
    headroom: Headroom = chain.view.headroom
    if chain.call.tool in headroom.stopped_tools or chain.call.tool in chain.view.state.stopped_tools:
        return "the tool has been stopped by an admin"
    return None


def _not_drifted(chain: CallAuthorizer) -> str | None:
    drifted = chain.call.tool in chain.view.state.drifted
    return "what it answers does not fit its declared form any more" if drifted else None


def _in_boundary(chain: CallAuthorizer) -> str | None:
    boundary = chain.view.pins.boundary
    grant = boundary.grant_for(chain.call.tool)
    if grant is None:
        return "the boundary does not allow this tool"
    assert chain.spec is not None
    ceiling = min(grant.risk_ceiling.rank, boundary.risk_ceiling.rank)
    if risk_of_call(chain.view, chain.spec, chain.call).rank > ceiling:
        return "the tool's risk class is above the boundary's ceiling"
    return None


def _refuse_memory_tool(chain: CallAuthorizer) -> str | None:
    assert chain.spec is not None
    return refused_by_boundary(chain.spec, chain.view.pins.boundary)


def _refuse_unsandboxed_tool(chain: CallAuthorizer) -> str | None:
    assert chain.spec is not None
    return refused_apart(chain.spec, chain.view.pins.boundary)


def _refuse_unavailable_tool(chain: CallAuthorizer) -> str | None:
    assert chain.spec is not None
    why = find_missing_dependency(chain.spec, chain.view.headroom) or left_out(chain.view, chain.call)
    return None if why is None else f"it is not available here: {why}"


def _refuse_costlier_tool(chain: CallAuthorizer) -> str | None:
    assert chain.spec is not None
    other = find_cheaper_tool(chain.view, chain.call, chain.spec)
    return None if other is None else f"{other.name} does the same for less; call that instead"


def _in_scope(chain: CallAuthorizer) -> str | None:
    assert chain.spec is not None
    held = chain.view.manifest.scopes
    lost = chain.view.headroom.missing_scopes
    # A principal that may no longer submit has nothing changed in its name either (Z5).
    needed = (*chain.spec.scopes, "submit") if chain.spec.is_mutating else chain.spec.scopes
    lacking = [scope for scope in needed if scope not in held or scope in lost]
    return f"the submitting principal lacks {', '.join(lacking)}" if lacking else None


def _not_repeated(chain: CallAuthorizer) -> str | None:
    limit = chain.view.pins.boundary.identical_calls
    seen = chain.view.state.repeats.get(action_key(chain.call), 0)
    if seen < limit or chain.call.grant is not None:
        return None
    tripped = BreakerTripped(
        breaker="repeated_call",
        reason="identical_call",
        subject=chain.call.tool,
        limit=Decimal(limit),
        actual=Decimal(seen + 1),
    )
    chain.said.append(trace_event(Phase.TOOL_ELIGIBILITY, tripped))
    return f"the same call was already made {seen} times; use its result"


def _not_in_doubt(chain: CallAuthorizer) -> str | None:
    doubtful = [f for f in chain.view.state.failures if f.tool == chain.call.tool and f.error == "in_doubt"]
    assert chain.spec is not None
    return "an earlier identical call may have happened" if doubtful and chain.spec.is_mutating else None


def _not_refused_often(chain: CallAuthorizer) -> str | None:
    limit = chain.view.pins.boundary.refusal_limit
    refused = chain.view.state.refused.get(chain.call.tool, 0)
    return f"people refused this {refused} times" if refused >= limit else None


_RULES: tuple[tuple[str, Callable[[CallAuthorizer], str | None]], ...] = (
    ("emergency_stop", _refuse_stopped_tool),
    ("parser_drift", _not_drifted),
    ("boundary_allow_list", _in_boundary),
    ("boundary_memory", _refuse_memory_tool),
    ("boundary_sandbox", _refuse_unsandboxed_tool),
    ("not_available", _refuse_unavailable_tool),
    ("principal_scopes", _in_scope),
    ("least_tool", _refuse_costlier_tool),
    ("repeated_call", _not_repeated),
    ("unresolved_intent", _not_in_doubt),
    ("refused_before", _not_refused_often),
)
# Rules that mark a call as unauthorized; the other rules mean a permitted call at the wrong time.
UNAUTHORIZED = ("boundary_allow_list", "principal_scopes")
# Rules whose answer may change between two attempts of a call.
MAY_CHANGE = ("emergency_stop", "boundary_allow_list", "not_available", "principal_scopes")
