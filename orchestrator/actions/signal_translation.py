"""Signals as events of the machine. What a person wrote becomes content; the event names its digest."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from budgets.core.pricing import ModelPrice
from orchestrator.actions.claimed_run import Hand
from orchestrator.actions.read_phase import SignalRow, digest_of
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
Translator = Callable[[Hand, SignalRow, datetime, Bodies], AnyEvent]


def translate(hand: Hand, signal: SignalRow, at: datetime) -> tuple[AnyEvent, Bodies]:
    """The event of a signal and the content it brings."""
    bodies: Bodies = {}
    return _TRANSLATORS[signal.kind](hand, signal, at, bodies), bodies


def _kept(hand: Hand, bodies: Bodies, text: str | None) -> str | None:
    if not text:
        return None
    body = text.encode()
    digest = digest_of(hand, body)
    bodies[digest] = body
    return digest


def _by(signal: SignalRow) -> str:
    return str(signal.by) if signal.by is not None else "system"


def _decided(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said: Mapping[str, Any] = signal.payload
    if said["decision"] == "answer":
        answer = _kept(hand, bodies, said["answer"])
        assert answer is not None
        return QuestionAnswered(
            at=at,
            request=said["request"],
            answer=answer,
            decision_digest=said["decision_digest"],
            by=_by(signal),
        )
    return GateDecided(
        at=at,
        request=said["request"],
        decision=said["decision"],
        decision_digest=said["decision_digest"],
        by=_by(signal),
        role=said.get("role", ""),
        packet_digest=said["packet_digest"],
        arguments=_kept(hand, bodies, said.get("arguments")),
        reason=_kept(hand, bodies, said.get("reason")),
        amounts=_granted(said),
    )


def _granted(said: Mapping[str, Any]) -> dict[str, Decimal]:
    """The amounts of an extension; the decision keeps them where an edit keeps its arguments."""
    if said["decision"] != "extend":
        return {}
    return {name: Decimal(amount) for name, amount in orjson.loads(said["arguments"]).items()}


def _expired(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return GateExpired(at=at, request=signal.payload["request"])


def _cancel(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return CancelAsked(at=at, by=_by(signal), reason=str(signal.payload.get("reason", ""))[:300])


def _pause(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return Paused(at=at, by=_by(signal), reason=str(signal.payload.get("reason", ""))[:300])


def _resume(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    return Resumed(at=at, by=_by(signal))


def _corrected(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return CostCorrected(
        at=at, effect=said["effect"], delta=Decimal(said["delta"]), price_version=said["price_version"],
        by=_by(signal), reason=said["reason"], more=bool(said.get("more")),
    )  # fmt: skip


def _repriced(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return PriceCorrected(
        at=at, subject=said["subject"], was=said["was"], price_version=said["price_version"],
        models={name: ModelPrice.model_validate(price) for name, price in said["models"].items()},
        tools={name: ToolPrice.model_validate(price) for name, price in said["tools"].items()},
        by=_by(signal), reason=said["reason"], more=bool(said.get("more")),
    )  # fmt: skip


def _tighten(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return PolicyTightened(
        at=at, tool=said["tool"], disabled=bool(said.get("disabled")), risk=said.get("risk")
    )


def _late(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return LateAnswer(
        at=at,
        effect=said["effect"],
        status=said["status"],
        observation=_kept(hand, bodies, said.get("observation")),
    )


def _reconciled(hand: Hand, signal: SignalRow, at: datetime, bodies: Bodies) -> AnyEvent:
    said = signal.payload
    return EffectReconciled(
        at=at, change=SentChange.model_validate(said["change"]), verdict=said["verdict"], by=_by(signal),
        reason=said["reason"],
    )  # fmt: skip


_TRANSLATORS: dict[str, Translator] = {
    "decided": _decided,
    "expired": _expired,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "corrected": _corrected,
    "repriced": _repriced,
    "tighten": _tighten,
    "late": _late,
    "reconciled": _reconciled,
}
KINDS = tuple(_TRANSLATORS)
