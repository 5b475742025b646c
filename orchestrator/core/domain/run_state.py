"""The state of a run: only what guards and nodes read (docs/ring.md). Content stands in payloads, named by
digest."""

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
    """A person's yes to one exact action, not yet used; `arguments` are the bytes it is for."""

    request: str
    arguments: Hex
    argument_digest: Hex
    by: str


class Unread(FrozenModel):
    """An answer that could not be read, or not whole: its first bytes, how many there were, and the SHA-256
    of those that were read. `status` 0: its protocol knows none."""

    observation: Hex | None = None
    size: int = 0
    whole: str = ""
    status: int = 0
    fault: str = ""


class Call(FrozenModel):
    """One requested call with its rung. It leaves the state once its result is in the conversation and its
    fact kept.

    `provider_id` is the id under which its result goes back to the model; `raw` the arguments as they
    came, `arguments` the normalised bytes. `observation` is None where nothing came back. `unsent` counts the
    attempts that no worker sent. `unread` is the answer that could not be read.
    """

    id: str
    by: str
    provider_id: str
    tool: str
    ordinal: int
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
    unread: Unread | None = None


class Result(FrozenModel):
    """The one result of a call for the model; `content` is the digest of the bounded text."""

    call: str
    provider_id: str
    tool: str
    status: str
    content: Hex


class Fact(FrozenModel):
    """A committed fact (R-LOOP-5): where it came from, who checked it, how far it is trusted; small closed
    values only. `record` is 0 or less where a retry began with it: counted back from where it began."""

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


class Pending(FrozenModel):
    """An effect in flight, with what was reserved for it."""

    kind: Literal["call_model", "call_tool"]
    call: str | None
    attempt: int
    reserve: Amounts
    mutating: bool = False
    purpose: Literal["act", "call", "read_back", "undo"] = "act"
    profile: str = ""
    claims: bool = False


class SideEffect(FrozenModel):
    """A change that was made, or of which nobody knows: what it was called with, what came back, and what
    became of it when the run ended without its result. `room` is what is kept back to undo it."""

    tool: str
    arguments: Hex
    observation: Hex | None = None
    standing: Literal["done", "in_doubt", "open", "undone", "left"] = "done"
    why: str = ""
    room: Amounts = {}


class OpenEffect(FrozenModel):
    """A change that was asked for and has no result: the newest call of it, its effect and key, and why."""

    call: str
    tool: str
    effect: str
    key: str
    error: str


class Verdict(FrozenModel):
    """What was learnt of a change of the call `call` after its run had ended. `reopened`: it was said not to
    have happened, and something came afterwards that says otherwise. `attempts` are its effects."""

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
    """An interrupt that was asked for and is taken as soon as nothing is in flight."""

    interrupt: Interrupt
    reason: str
    stop: bool = False


class CompensationState(FrozenModel):
    """A run that is on its way to an end without a result, and undoes first what it did (R-TOOL-15).

    `halting` is what forced the end where the graph's own way out was cut off; `call` the action that is
    being undone.
    """

    code: TerminalCode
    halting: PendingInterrupt | None = None
    call: str = ""


class Repairing(FrozenModel):
    """A tool whose arguments came malformed in `turns` turns running, the last of them number `last`."""

    turns: int
    last: int


class Returned(FrozenModel):
    """One proposal that a person sent back: its request, its arguments, what the person said."""

    request: str
    arguments: Hex
    words: Hex


class SentBack(FrozenModel):
    """What people sent back of a step's newest reply. `times`: how many replies that happened to, running;
    calls up to number `upto` were asked for before anything of it was said, those after number `since` knew
    what is in `before`. `over`: the reply after it was written; `settled`: a call of that one was allowed or
    refused, so what comes next begins anew."""

    times: int
    upto: int
    returned: tuple[Returned, ...]
    since: int = 0
    before: tuple[Returned, ...] = ()
    over: bool = False
    settled: bool = False


class Review(FrozenModel):
    """What a person said of a call that was made of a draft, the draft it was, and the node that asked."""

    words: Hex
    draft: Hex | None
    by: str


class Away(FrozenModel):
    """A model that the run waits for since `since`, at the latest until `until` (None: its deadline alone).

    `by`: what ends the wait, its own `timer`, the model's `circuit` when it lets a call through, or the
    `line` in front of it. `cause` is how the last call failed, `rests` whether the run's clock stands.
    """

    since: datetime
    profile: str
    cause: str
    by: Literal["timer", "circuit", "line"]
    until: datetime | None = None
    rests: bool = True


class Counters(FrozenModel):
    """How often; gauges and bounds read them."""

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
    """See the module. `exchanges` is a bounded window of links of the conversation; older ones live in
    the trace. `opened` are effects by what was asked for; `echoes` are the arguments that a model put
    into tools, by fact or failed call; `planned` the calls of changes in a reply that was written before
    anything untrusted was read; `foreseen` the tools of those that were found eligible, and of those that
    a person agreed to; `prices`, by profile, and `tool_prices` replace pinned ones that were wrong;
    `sent` the arguments of reading calls that held an address, in their order; `shortened` the dimension
    that allows the open model call less output than it was to have, `cut` the one by which the newest
    reply was cut short; `stood_down` the profiles that another one took over from; `sent_back`, by step,
    is what people sent back to be proposed anew, `review` what they said to whoever wrote the draft of
    it, until that is proposed anew. `away` is the model that the run waits for, until it answers;
    `reconciled` is what was learnt of changes after the end, by effect."""

    version: int = 0
    position: str
    status: Status = Status.QUEUED
    intent: str = ""
    limits: Amounts
    usage: Amounts = {}
    pending: Mapping[str, Pending] = {}
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
    malformed: Mapping[str, Repairing] = {}
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
    away: Away | None = None
    reconciled: Mapping[str, Verdict] = {}

    def facts_in_order(self, newest: int = 0) -> list[tuple[str, Fact]]:
        """The facts as they were committed, oldest first, or so many of the newest: a stored mapping keeps no
        order of its own."""
        facts = self.facts
        places = sorted(zip([fact.record for fact in facts.values()], facts, strict=True))
        return [(name, facts[name]) for _, name in places[-newest:]]

    def window(self, length: int) -> tuple[Hex, ...]:
        """The last `length` links of the conversation, oldest first."""
        return tuple(self.exchanges[key] for key in sorted(self.exchanges, key=int)[-length:])

    def still_open(self) -> tuple[str, ...]:
        """What was begun or asked for and has no result, a sentence each; an interrupt keeps what it cuts
        off."""
        calls = tuple(f"{call.tool} ({call.id}): {call.rung}" for call in (*self.batch, *self.queue))
        people = tuple(f"asked of people: {gate.kind}" for _, gate in sorted(self.gates.items()))
        missing = tuple(f"missing: {name}" for name in self.asked)
        return tuple(dict.fromkeys(self.unfinished + calls + people + missing))

    def left(self, dimension: str) -> Decimal | None:
        """What is left of a dimension: limit less used, less held in flight, less what is kept back to undo
        what was done; None without a limit."""
        limit = self.limits.get(dimension)
        if limit is None:
            return None
        left = limit - self.usage.get(dimension, ZERO)
        for flying in self.pending.values():
            left -= flying.reserve.get(dimension, ZERO)
        return left - self.kept[dimension] if dimension in self.kept else left
