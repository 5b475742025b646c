"""The effects that a run requests, and their ids.

The ids stay the same after any crash or replay (docs/ring.md).
"""

from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from orchestrator.core.common.frozen_model import FrozenModel, Hex
from orchestrator.core.common.run_status import Status, TerminalCode
from traces.core.canonical import text_of

Amounts = dict[str, Decimal]


def effect_id(run: UUID, transition: int, ordinal: int, attempt: int) -> str:
    """Return 32 hex digits that depend only on the place in the run."""
    return sha256(f"effect\0{text_of(run)}\0{transition}\0{ordinal}\0{attempt}".encode()).hexdigest()[:32]


def idempotency_key(run: UUID, tool: str, argument_digest: str, confirmed: int) -> str:
    """Return the key of one logical action (R-TOOL-9).

    The key is stable over retries, crashes and repeated requests. `run` is the first run of a line of
    retries.
    """
    return sha256(f"key\0{text_of(run)}\0{tool}\0{argument_digest}\0{confirmed}".encode()).hexdigest()[:40]


class CallModel(FrozenModel):
    """Call the model that plays `role`; `request` is the digest of the compiled prompt."""

    kind: Literal["call_model"] = "call_model"
    id: str
    node: str
    role: str
    profile: str
    request: Hex
    max_output_tokens: int
    reserve: Amounts
    timeout_ms: int
    attempt: int


class CallTool(FrozenModel):
    """Run one pinned tool version with these exact argument bytes; `grant` is consumed with the intent.

    `look_first`: an earlier call of the same action is open, and its outcome is looked up before this call
    is sent.
    """

    kind: Literal["call_tool"] = "call_tool"
    id: str
    node: str
    call: str
    tool: str
    tool_digest: Hex
    arguments: Hex
    argument_digest: Hex
    key: str
    reserve: Amounts
    timeout_ms: int
    attempt: int
    mutating: bool
    honours_keys: bool
    lookup: bool
    conclusive: bool
    external: bool
    grant: str | None = None
    action_digest: str | None = None
    conflicts: tuple[str, ...] = ()
    look_first: bool = False


class SentChange(FrozenModel):
    """One requested change, by its newest request.

    It holds what identifies the change and what the change would do. `attempts` are the effects of all its
    requests.
    """

    effect: str
    call: str
    tool: str
    key: str
    arguments: Hex
    argument_digest: Hex
    attempts: tuple[str, ...] = ()


class AskApproval(FrozenModel):
    """Open a request; `packet` is the digest of the frozen packet's bytes."""

    kind: Literal["ask_approval"] = "ask_approval"
    id: str
    request: UUID
    request_kind: Literal["action", "reconciliation", "budget"]
    call: str
    packet: Hex
    packet_digest: Hex
    action_digest: str
    quorum: int
    tool: str
    queue: str
    amount: Decimal | None
    has_amount: bool
    risk: str
    expires_at: datetime


class AskPerson(FrozenModel):
    """Ask the submitter; `packet` is the digest of the question's packet."""

    kind: Literal["ask_person"] = "ask_person"
    id: str
    request: UUID
    packet: Hex
    packet_digest: Hex
    answer_schema: dict[str, Any]
    expires_at: datetime


class SetTimer(FrozenModel):
    """Wake the run at a time; no worker waits."""

    kind: Literal["set_timer"] = "set_timer"
    id: str
    due: datetime


class Finish(FrozenModel):
    """Close the run: the last effect of every run."""

    kind: Literal["finish"] = "finish"
    id: str
    code: TerminalCode
    status: Status
    reason: str
    result: Hex | None


Effect = CallModel | CallTool | AskApproval | AskPerson | SetTimer | Finish
Performed = CallModel | CallTool
