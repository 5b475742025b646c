"""Signals as events of the machine. What a person wrote becomes content; the event names its digest."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from budgets.core.pricing import ModelPrice
from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.read_phase import SignalRow, digest_of
from orchestrator.core.common.tool_price import ToolPrice
from orchestrator.core.domain.effects import SentChange
from orchestrator.core.domain.run_events import (
    AnyEvent,
    CancelAsked,
    CostCorrected,
    EffectReconciled,
    GateDecided,
    GateExpired,
    LateAnswer,
    Paused,
    PolicyTightened,
    PriceCorrected,
    QuestionAnswered,
    Resumed,
)

Bodies = dict[str, bytes]
Translator = Callable[[ClaimedRun, SignalRow, datetime, Bodies], AnyEvent]


def translate_signal(hand: ClaimedRun, signal: SignalRow, at: datetime) -> tuple[AnyEvent, Bodies]:
    """The event of a signal and the content it brings."""
    bodies: Bodies = {}
    return _TRANSLATORS[signal.kind](hand, signal, at, bodies), bodies


def _store_body(hand: ClaimedRun, bodies: Bodies, text: str | None) -> str | None:
    if not text:
        return None
    body = text.encode()
    digest = digest_of(hand, body)
    bodies[digest] = body
    return digest


def _format_actor(signal: SignalRow) -> str:
    return str(signal.by) if signal.by is not None else "system"


def _translate_decision(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said: Mapping[str, Any] = signal.payload
    if said["decision"] == "answer":
        answer = _store_body(hand, bodies, said["answer"])
        assert answer is not None
        return QuestionAnswered(
            at=at,
            request=said["request"],
            answer=answer,
            decision_digest=said["decision_digest"],
            by=_format_actor(signal),
        )
    return GateDecided(
        at=at,
        request=said["request"],
        decision=said["decision"],
        decision_digest=said["decision_digest"],
        by=_format_actor(signal),
        role=said.get("role", ""),
        packet_digest=said["packet_digest"],
        arguments=_store_body(hand, bodies, said.get("arguments")),
        reason=_store_body(hand, bodies, said.get("reason")),
        amounts=_parse_granted_amounts(said),
    )


def _parse_granted_amounts(said: Mapping[str, Any]) -> dict[str, Decimal]:
    """The amounts of an extension; the decision keeps them where an edit keeps its arguments."""
    if said["decision"] != "extend":
        return {}
    return {name: Decimal(amount) for name, amount in orjson.loads(said["arguments"]).items()}


def _translate_expiry(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return GateExpired(at=at, request=signal.payload["request"])


def _translate_cancel(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return CancelAsked(at=at, by=_format_actor(signal), reason=str(signal.payload.get("reason", ""))[:300])


def _translate_pause(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return Paused(at=at, by=_format_actor(signal), reason=str(signal.payload.get("reason", ""))[:300])


def _translate_resume(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return Resumed(at=at, by=_format_actor(signal))


def _translate_cost_correction(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return CostCorrected(
        at=at, effect=said["effect"], delta=Decimal(said["delta"]), price_version=said["price_version"],
        by=_format_actor(signal), reason=said["reason"], more=bool(said.get("more")),
    )  # fmt: skip


def _translate_price_correction(
    hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies
) -> AnyEvent:
    said = signal.payload
    return PriceCorrected(
        at=at, subject=said["subject"], was=said["was"], price_version=said["price_version"],
        models={name: ModelPrice.model_validate(price) for name, price in said["models"].items()},
        tools={name: ToolPrice.model_validate(price) for name, price in said["tools"].items()},
        by=_format_actor(signal), reason=said["reason"], more=bool(said.get("more")),
    )  # fmt: skip


def _translate_policy_tightening(
    hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies
) -> AnyEvent:
    said = signal.payload
    return PolicyTightened(
        at=at, tool=said["tool"], disabled=bool(said.get("disabled")), risk=said.get("risk")
    )


def _translate_late_answer(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return LateAnswer(
        at=at,
        effect=said["effect"],
        status=said["status"],
        observation=_store_body(hand, bodies, said.get("observation")),
    )


def _translate_reconciliation(hand: ClaimedRun, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return EffectReconciled(
        at=at,
        change=SentChange.model_validate(said["change"]),
        verdict=said["verdict"],
        by=_format_actor(signal),
        reason=said["reason"],
    )


_TRANSLATORS: dict[str, Translator] = {
    "decided": _translate_decision,
    "expired": _translate_expiry,
    "cancel": _translate_cancel,
    "pause": _translate_pause,
    "resume": _translate_resume,
    "corrected": _translate_cost_correction,
    "repriced": _translate_price_correction,
    "tighten": _translate_policy_tightening,
    "late": _translate_late_answer,
    "reconciled": _translate_reconciliation,
}
KINDS = tuple(_TRANSLATORS)
