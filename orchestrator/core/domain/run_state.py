"""The state of a run: only what guards and nodes read (docs/ring.md).

Content is stored in payloads and named by digest.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal

from budgets.core.pricing import ModelPrice
from orchestrator.core.common.frozen_model import FrozenModel, Hex, Small
from orchestrator.core.common.run_status import Status, TerminalCode
from orchestrator.core.common.tool_price import ToolPrice
from orchestrator.core.domain.effects import Amounts
from orchestrator.core.domain.graph import Interrupt

ZERO = Decimal(0)
RungName = Literal["intended", "attempted", "observed", "verified", "failed", "in_doubt"]


class Grant(FrozenModel):
    """A person's approval of one exact action, not yet used; `arguments` are the approved bytes."""

    request: str
    arguments: Hex
    argument_digest: Hex
    by: str


class UnreadAnswer(FrozenModel):
    """An answer that could not be read completely.

    It holds the first bytes of the answer, the number of bytes, and the SHA-256 of the bytes that were
    read. `status` 0: its protocol has no status.
    """

    observation: Hex | None = None
    size: int = 0
    whole: str = ""
    status: int = 0
    fault: str = ""


class Call(FrozenModel):
    """One requested call with its rung, the stage it has reached.

    The call leaves the state once its result is in the conversation and its fact is stored. `provider_id`
    is the id under which its result goes back to the model; `raw` holds the arguments as they came,
    `arguments` the normalised bytes. `observation` is None if nothing came back. `unsent` counts the
    attempts that no worker sent. `unread` is the answer that could not be read.
    """

    id: str
    by: str
    provider_id: str
    tool: str
    raw: Hex
    rung: RungName = "intended"
    arguments: Hex | None = None
    argument_digest: Hex | None = None
    key: str | None = None
    attempt: int = 0
    effect: str | None = None
    observation: Hex | None = None
    error: str | None = None
    sent: bool = True
    request: str | None = None
    grant: Grant | None = None
    edited: bool = False
    read_back: Hex | None = None
    verdict: str | None = None
    used_grant: bool = False
    unsent: int = 0
    unread: UnreadAnswer | None = None


class Result(FrozenModel):
    """The one result of a call for the model; `content` is the digest of the bounded text."""

    call: str
    provider_id: str
    tool: str
    status: str
    content: Hex


class Fact(FrozenModel):
    """A committed fact (R-LOOP-5): its source, its validator and its trust; small closed values only.

    `record` is 0 or less for a fact that a retry began with: counted back from the record where the retry
    began.
    """

    version: int
    digest: Hex
    tool: str
    call: str
    node: str
    validator: str
    trust: Literal["trusted", "untrusted"]
    record: int
    at: datetime
    values: Mapping[str, Small]


class Failure(FrozenModel):
    """An error state: shown to the model until a later success of the same tool supersedes it (R-LOOP-7)."""

    tool: str
    error: str
    attempt: int
    observation: Hex | None


class PendingEffect(FrozenModel):
    """An effect in flight, with the amounts reserved for it."""

    kind: Literal["call_model", "call_tool"]
    call: str | None
    attempt: int
    reserve: Amounts
    mutating: bool = False
    purpose: Literal["act", "call", "read_back", "undo"] = "act"
    profile: str = ""
    claims: bool = False


class SideEffect(FrozenModel):
    """A change that was made, or that may have been made.

    It holds the arguments, the result, and the status after a run that ended without its result. `room` is
    the budget reserved to undo the change.
    """

    tool: str
    arguments: Hex
    observation: Hex | None = None
    standing: Literal["done", "in_doubt", "open", "undone", "left"] = "done"
    why: str = ""
    room: Amounts = {}


class OpenEffect(FrozenModel):
    """A requested change without a result: the newest call of it, its effect and key, and the error."""

    call: str
    tool: str
    effect: str
    key: str
    error: str


class Verdict(FrozenModel):
    """The verdict on a change of the call `call`, learnt after its run had ended.

    `reopened`: the change was recorded as not made, and a later event contradicts that. `attempts` are its
    effects.
    """

    verdict: Literal["happened", "not_happened", "reopened"]
    call: str
    by: str
    attempts: tuple[str, ...] = ()


class Gate(FrozenModel):
    """An open request to people."""

    call: str
    kind: Literal["action", "reconciliation", "question", "budget"]
    packet_digest: Hex
    action_digest: str
    expires_at: datetime


class PendingInterrupt(FrozenModel):
    """An interrupt that was requested and is taken as soon as nothing is in flight."""

    interrupt: Interrupt
    reason: str
    stop: bool = False


class CompensationState(FrozenModel):
    """The state of a run that ends without a result and first undoes its changes (R-TOOL-15).

    `halting` is what forced the end if the graph's own way out was cut off; `call` is the action that is
    being undone.
    """

    code: TerminalCode
    halting: PendingInterrupt | None = None
    call: str = ""


class MalformedTool(FrozenModel):
    """A tool whose arguments were malformed in `turns` consecutive turns, the last of them number `last`."""

    turns: int
    last: int


class ReturnedProposal(FrozenModel):
    """One proposal that a person sent back: its request, its arguments and the person's comment."""

    request: str
    arguments: Hex
    words: Hex


class SentBack(FrozenModel):
    """The proposals of a step's newest reply that people sent back.

    `times` counts the consecutive replies that were sent back. Calls up to number `upto` were requested
    before any comment on the reply; those after number `since` were requested with the comments in `before`
    known. `over`: the next reply was written; `settled`: a call of that reply was allowed or refused, so
    the next change request starts a new count.
    """

    times: int
    upto: int
    returned: tuple[ReturnedProposal, ...]
    since: int = 0
    before: tuple[ReturnedProposal, ...] = ()
    over: bool = False
    settled: bool = False


class Review(FrozenModel):
    """A person's comment on a call made from a draft, with the draft and the node that made the call."""

    words: Hex
    draft: Hex | None
    by: str


class ModelWait(FrozenModel):
    """A model that the run waits for since `since`, at the latest until `until`.

    `until` None: only the run's deadline ends the wait. `by` names what ends the wait: its own `timer`, the
    model's `circuit` when it lets a call through, or the waiting `line` in front of it. `cause` is how the
    last call failed; `rests` says whether the run's clock is stopped.
    """

    since: datetime
    profile: str
    cause: str
    by: Literal["timer", "circuit", "line"]
    until: datetime | None = None
    rests: bool = True


class Counters(FrozenModel):
    """Counters that gauges and bounds read."""

    denials: int = 0
    refusals: int = 0
    repairs: int = 0
    empty: int = 0
    errors: int = 0
    unchanged: int = 0
    calls: int = 0
    facts: int = 0
    model_attempts: int = 0
    budget_requests: int = 0


class RunState(FrozenModel):
    """The state of a run; see the module docstring.

    `exchanges` is a bounded window of links of the conversation; older ones are only in the trace. `opened`
    are effects by the requested action; `echoes` are the arguments that a model gave to tools, by fact or
    failed call; `planned` are the calls of changes in a reply that was written before anything untrusted
    was read; `foreseen` are the tools of those calls that were found eligible, and of those that a person
    approved; `prices`, by profile, and `tool_prices` replace pinned ones that were wrong; `sent` are the
    arguments of reading calls that held an address, in order; `shortened` is the dimension that limits the
    output of the open model call, `cut` the one that cut the newest reply short; `stood_down` are the
    profiles that another one replaced; `sent_back`, by step, are the proposals that people sent back,
    `review` is their comment for the author of the draft, until the next proposal. `away` is the model that
    the run waits for, until it answers; `reconciled` is what was learnt about changes after the end, by
    effect.
    """

    version: int = 0
    position: str
    status: Status = Status.QUEUED
    intent: str = ""
    limits: Amounts
    usage: Amounts = {}
    pending: Mapping[str, PendingEffect] = {}
    queue: tuple[Call, ...] = ()
    batch: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    reply: Hex | None = None
    exchanges: Mapping[str, Hex] = {}
    facts: Mapping[str, Fact] = {}
    failures: tuple[Failure, ...] = ()
    gates: Mapping[str, Gate] = {}
    answers: tuple[Hex, ...] = ()
    asked: tuple[str, ...] = ()
    repeats: Mapping[str, int] = {}
    confirmed: Mapping[str, int] = {}
    deeds: Mapping[str, SideEffect] = {}
    opened: Mapping[str, OpenEffect] = {}
    kept: Amounts = {}
    unwinding: CompensationState | None = None
    refused: Mapping[str, int] = {}
    visits: Mapping[str, int] = {}
    rates: Mapping[str, Mapping[str, int]] = {}
    malformed: Mapping[str, MalformedTool] = {}
    counters: Counters = Counters()
    draft: Hex | None = None
    best: Hex | None = None
    best_score: int = 0
    unfinished: tuple[str, ...] = ()
    feedback: Hex | None = None
    linked: int = 0
    stopped_tools: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    guarded: bool = False
    flagged: tuple[str, ...] = ()
    stood_down: tuple[str, ...] = ()
    thrifty: bool = False
    paused: bool = False
    held: bool = False
    last_askers: tuple[str, ...] = ()
    halting: PendingInterrupt | None = None
    frozen: PendingInterrupt | None = None
    timer: datetime | None = None
    clock_since: datetime | None = None
    clock_ms: int = 0
    interrupt: Interrupt | None = None
    reason: str = ""
    result: Hex | None = None
    partial: bool = False
    expired: bool = False
    outcome: TerminalCode | None = None
    echoes: Mapping[str, Hex] = {}
    foreseen: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    prices: Mapping[str, ModelPrice] = {}
    tool_prices: Mapping[str, ToolPrice] = {}
    sent: Mapping[str, Hex] = {}
    shortened: str = ""
    cut: str = ""
    sent_back: Mapping[str, SentBack] = {}
    review: Review | None = None
    away: ModelWait | None = None
    reconciled: Mapping[str, Verdict] = {}

    def facts_in_order(self, newest: int = 0) -> list[tuple[str, Fact]]:
        """Return the facts in the order of their commits, oldest first, or only that many of the newest.

        A stored mapping keeps no order of its own.
        """
        facts = self.facts
        places = sorted(zip([fact.record for fact in facts.values()], facts, strict=True))
        return [(name, facts[name]) for _, name in places[-newest:]]

    def window(self, length: int) -> tuple[Hex, ...]:
        """Return the last `length` links of the conversation, oldest first."""
        return tuple(self.exchanges[key] for key in sorted(self.exchanges, key=int)[-length:])

    def still_open(self) -> tuple[str, ...]:
        """Describe, one sentence each, everything that was begun or requested and has no result.

        Entries that an interrupt cut off are kept.
        """
        calls = tuple(f"{call.tool} ({call.id}): {call.rung}" for call in (*self.batch, *self.queue))
        people = tuple(f"asked of people: {gate.kind}" for _, gate in sorted(self.gates.items()))
        missing = tuple(f"missing: {name}" for name in self.asked)
        return tuple(dict.fromkeys(self.unfinished + calls + people + missing))

    def left(self, dimension: str) -> Decimal | None:
        """Return what is left of a dimension; None without a limit.

        It is the limit less the usage, less the reservations in flight, less the undo reserves.
        """
        limit = self.limits.get(dimension)
        if limit is None:
            return None
        left = limit - self.usage.get(dimension, ZERO)
        for flying in self.pending.values():
            left -= flying.reserve.get(dimension, ZERO)
        return left - self.kept[dimension] if dimension in self.kept else left
