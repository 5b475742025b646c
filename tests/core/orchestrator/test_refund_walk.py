"""The shipped refund, walked by the machine with answers by hand: its way through nodes, gates and ends."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest

from budgets.core.pricing import ModelPrice
from orchestrator import bundled_content
from orchestrator.core.common.goal import Criterion, Goal
from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.common.run_status import TerminalCode
from orchestrator.core.compiler.compiler import compile_graph
from orchestrator.core.domain.content_store import ContentStore
from orchestrator.core.domain.effects import AskApproval, AskPerson, CallModel, CallTool, Effect
from orchestrator.core.domain.manifest import Manifest, Pins
from orchestrator.core.domain.run_events import (
    AnyEvent,
    GateDecided,
    Headroom,
    ModelReplied,
    QuestionAnswered,
    Started,
    ToolAnswered,
    ToolFailed,
)
from orchestrator.core.domain.run_state import RunState
from orchestrator.core.domain.tool_spec import Reversibility, Risk, ToolSpec, Verifier
from orchestrator.core.engine.machine import CORE_VERSION, advance
from orchestrator.core.policy.task_scope import scope_of
from tests.core.orchestrator.simulation import PERMISSIVE
from tests.proves import proves

HEX = "b" * 64
SALT = b"salt"
RUN = UUID(int=7)
ORDER = {
    "id": "A-1001",
    "customer": {"name": "Zoë", "email": "zoe@example.org"},
    "total": "129.90",
    "currency": "USD",
}
POLICY = {"order_id": "A-1001", "refundable": True, "max_amount": "129.90"}
REFUND = {"id": "R-1", "order_id": "A-1001", "amount": "129.90", "currency": "USD"}
ANSWERS = {
    "orders.lookup": ORDER,
    "policy.evaluate": POLICY,
    "payments.refund": REFUND,
    "mail.send": {"id": "M-1"},
}
TEXT = "Dear Zoë, 129.90 USD for order A-1001 is on its way back to you."


def tool(name: str, risk: Risk, *facts: str) -> ToolSpec:
    read = risk is Risk.READ_ONLY
    return ToolSpec(
        name=name,
        version=1,
        description=name,
        category="shop",
        capability=name,
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        risk=risk,
        reversibility=Reversibility.PURE if read else Reversibility.IRREVERSIBLE,
        verifier=Verifier(name="schema"),
        facts={fact: f"/{fact}" for fact in facts},
    )


TOOLS = (
    tool("orders.lookup", Risk.READ_ONLY, "id", "total"),
    tool("policy.evaluate", Risk.READ_ONLY, "refundable", "max_amount"),
    tool("payments.refund", Risk.DESTRUCTIVE, "id", "amount"),
    tool("mail.send", Risk.NETWORK, "id"),
)


PROFILE = ModelProfile(
    name="scripted",
    provider="scripted",
    model="scripted",
    roles=("writer",),
    price=ModelPrice.free("scripted", "scripted"),
)


class Walking:
    """A run in memory: feeds the machine, keeps what it made, answers its effects."""

    def __init__(
        self,
        inputs: dict[str, Any],
        answers: dict[str, Any] | None = None,
        *,
        acceptance: tuple[Criterion, ...] = (),
    ) -> None:
        spec = bundled_content.get_bundled_workflow("support-refund")
        boundary = bundled_content.get_bundled_boundary("support")
        named = {one.name: one for one in TOOLS}
        self.graph = compile_graph(
            spec, tools=named, boundary=boundary, prompts=bundled_content.load_bundled_prompts()
        )
        self.answers = ANSWERS | (answers or {})
        self.limits = {name: amount for name, amount in boundary.budget.items() if amount is not None}
        pins = Pins(
            boundary=boundary,
            boundary_digest=HEX,
            tools=TOOLS,
            tool_digests=dict.fromkeys(named, HEX),
            registry_digest=HEX,
            profiles=(PROFILE,),
            prompts=dict(bundled_content.load_bundled_prompts()),
            prompt_versions={},
            price_book="none",
            policy=PERMISSIVE,
        )
        goal = Goal(objective="Refund the order", inputs=inputs, acceptance=acceptance)
        self.manifest = Manifest(
            run=RUN,
            task=RUN,
            tenant=RUN,
            principal=RUN,
            owner=RUN,
            scopes=("submit",),
            goal=goal,
            goal_digest=HEX,
            graph=self.graph.digest,
            pins=pins,
            pins_digest=HEX,
            limits=self.limits,
            asked={},
            scope=scope_of(goal),
            workflow="support-refund",
            workflow_version=1,
            code_version="test",
            core_version=CORE_VERSION,
            scripted=True,
            admitted_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        self.state = RunState(position=self.graph.entry, limits=self.limits)
        self.content: dict[str, bytes] = {}
        self.at = datetime(2026, 1, 1, tzinfo=UTC)
        self.path: list[str] = []
        self.waiting: tuple[Effect, ...] = ()
        self.asked: list[Effect] = []
        self.feed(Started(at=self.at))

    def keep(self, value: Any) -> str:
        """Put content where the machine can read it."""
        desk = ContentStore(SALT, {})
        digest = desk.put(value.encode() if isinstance(value, str) else orjson.dumps(value))
        self.content.update(desk.made)
        return digest

    def feed(self, event: AnyEvent) -> None:
        """One event in; then every call of a read-only tool or model is answered."""
        desk = ContentStore(SALT, self.content)
        walk = advance(self.graph, self.manifest, self.state, event, Headroom(), desk)
        self.content.update(walk.made)
        self.state = walk.state
        self.path += [move.target for move in walk.transitions if move.outcome != "."]
        self.waiting = walk.effects
        self.asked += walk.effects
        self.at += timedelta(milliseconds=10)
        for effect in walk.effects:
            if isinstance(effect, CallTool):
                self.feed(self._called(effect))
            elif isinstance(effect, CallModel):
                reply, answer = self.keep({"text": TEXT, "calls": []}), self.keep(TEXT)
                usage = {"input_tokens": Decimal(10), "output_tokens": Decimal(10)}
                self.feed(ModelReplied(at=self.at, effect=effect.id, reply=reply, answer=answer, usage=usage))

    def _called(self, effect: CallTool) -> AnyEvent:
        given = self.answers[effect.tool]
        if isinstance(given, str):
            return ToolFailed(at=self.at, effect=effect.id, error=given, sent=False, transient=False)
        return ToolAnswered(at=self.at, effect=effect.id, observation=self.keep(given), size=1)

    @property
    def gate(self) -> AskApproval:
        """The open request."""
        (asked,) = [effect for effect in self.waiting if isinstance(effect, AskApproval)]
        return asked

    def decide(self, decision: str, words: str = "") -> None:
        """Answer the open gate."""
        asked = self.gate
        self.feed(
            GateDecided(
                at=self.at,
                request=str(asked.request),
                decision=decision,
                decision_digest=HEX,
                by=str(RUN),
                role="reviewer",
                packet_digest=asked.packet_digest,
                reason=self.keep(words) if words else None,
            )
        )


def calls(walking: Walking) -> list[str]:
    return [node for node in walking.path if node in ("lookup", "evaluate", "refund", "draft", "send")]


@proves("R-GRAPH-15", part="the refund's ends")
def test_two_yeses_lead_to_success() -> None:
    walking = Walking({"order_id": "A-1001"})
    assert walking.state.position == "gate"
    walking.decide("approve")
    assert walking.state.position == "gate"
    walking.decide("approve")
    assert walking.state.outcome is TerminalCode.SUCCESS
    assert calls(walking) == ["lookup", "evaluate", "refund", "draft", "send"]
    assert [*walking.state.facts] == ["order", "policy", "refund", "mail"]
    assert walking.state.result is not None
    output = orjson.loads(walking.content[walking.state.result])["output"]
    assert (output["refund_id"], output["amount"], output["message_id"]) == ("R-1", "129.90", "M-1")


def test_a_no_ends_it_before_the_money_moves() -> None:
    walking = Walking({"order_id": "A-1001"})
    walking.decide("reject")
    assert walking.state.outcome is TerminalCode.CONFIRM_REQUIRED
    assert "refund" not in walking.state.facts


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"policy.evaluate": POLICY | {"refundable": False}}, TerminalCode.IMPOSSIBLE),
        ({"orders.lookup": "refused"}, TerminalCode.IMPOSSIBLE),
        ({"orders.lookup": "unreachable"}, TerminalCode.UNAVAILABLE_DEP),
        ({"orders.lookup": "rate_limited"}, TerminalCode.UNAVAILABLE_DEP),
        ({"policy.evaluate": "malformed"}, TerminalCode.VALIDATION_FAIL),
    ],
)
def test_what_fails_names_itself(answers: dict[str, Any], code: TerminalCode) -> None:
    assert Walking({"order_id": "A-1001"}, answers).state.outcome is code


def test_a_missing_order_is_asked_for() -> None:
    walking = Walking({})
    (asked,) = [effect for effect in walking.waiting if isinstance(effect, AskPerson)]
    answer = walking.keep({"order_id": "A-1001"})
    walking.feed(
        QuestionAnswered(
            at=walking.at, request=str(asked.request), answer=answer, decision_digest=HEX, by="x"
        )
    )
    assert walking.state.position == "gate"
