"""The packet: all that a reviewer needs, frozen when the request is made (R-APPR-2)."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from traces.core.canonical import canonical_typed, compute_digest

Origin = Literal["goal", "plan", "trusted_fact", "untrusted_observation", "person", "model"]
Kind = Literal["action", "reconciliation", "clarification", "budget"]


class Part(BaseModel):
    """A frozen part of a packet."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolShown(Part):
    """The pinned tool. `effect` and `blast_radius` are sentences made from the exact arguments."""

    name: str
    version: int
    digest: str
    description: str
    risk: str
    reversibility: str
    effect: str
    blast_radius: str
    rollback: str


class ArgumentOrigin(Part):
    """The origin of one argument value; `pointer` is an RFC 6901 pointer into the arguments."""

    pointer: str
    origin: Origin
    reference: str = ""


class Evidence(Part):
    """One fact that the request is based on, as observed."""

    fact: str
    digest: str
    source: str
    trust: Literal["trusted", "untrusted"]
    value: str


class Costs(Part):
    """US$ spent so far, of this call, and left (None: no limit)."""

    so_far: Decimal
    this: Decimal
    left: Decimal | None


class WhoMayDecide(Part):
    """Roles, queue, and the number of distinct people who must agree."""

    roles: tuple[str, ...]
    queue: str
    quorum: int


class Proposal(Part):
    """The position of a call among its step's proposals: the `number`-th of at most `most` (R-APPR-3).

    - `returnable`: a person may send it back.
    - `words`: all comments of people on the proposals sent back, if this call answers one.
    - `answer`: the text that the agent wrote with this call, which is the agent's own claim.
    - `previous`: the request that this one replaces, "" if several are possible.
    """

    number: int
    most: int
    returnable: bool
    previous: str = ""
    words: tuple[str, ...] = ()
    answer: str = ""


class Packet(Part):
    """A request as it is shown, byte for byte.

    `arguments` is the canonical JSON that would be sent, `previous_arguments` that of the proposal it
    replaces. `proposal` is None if the call cannot be sent back to its proposer; the stored bytes then omit
    the field.
    """

    v: Literal[1] = 1
    request: str
    run: str
    kind: Kind
    goal: str
    step: str
    call: str = ""
    tool: ToolShown | None = None
    arguments: str = ""
    arguments_digest: str = ""
    previous_arguments: str | None = None
    provenance: tuple[ArgumentOrigin, ...] = ()
    why: str
    evidence: tuple[Evidence, ...] = ()
    costs: Costs
    confidence: Decimal | None = None
    scores: dict[str, Decimal] = Field(default_factory=dict)
    candidates: tuple[str, ...] = ()
    recommended_action: str
    who: WhoMayDecide
    trigger: str
    boundary: str
    action_digest: str = ""
    expires_at: datetime
    proposal: Proposal | None = None


class BudgetLine(Part):
    """One limit of a run that requests more budget.

    `needed` is the amount the next effect needed (None: this limit was not the one reached), `asked` the
    additional amount requested. `lower` and `upper` bound the usage of the rest of the run, if known.
    """

    dimension: str
    unit: str
    limit: Decimal
    used: Decimal
    left: Decimal
    needed: Decimal | None = None
    asked: Decimal
    lower: Decimal | None = None
    upper: Decimal | None = None


class BudgetPacket(Packet):
    """A request for more budget: every limit of the run at that moment, and the one that was reached."""

    budget: tuple[BudgetLine, ...]
    refused: str


class OriginPacket(Packet):
    """A request required by a rule about the origin of values; `policy` names the rule (R-TOOL-17).

    `stated_first` are the sentences that a reviewer has to read first, the worst first: values of untrusted
    or unknown origin that the task does not name. `ordinary` are sentences about values that the same rules
    check and that the task names or the boundary vouches for; the stored bytes omit the field if it is
    empty.
    """

    stated_first: tuple[str, ...]
    policy: str
    ordinary: tuple[str, ...] = ()


def alarming_pointers(packet: Packet) -> frozenset[str]:
    """Return the arguments that a sentence in `stated_first` is about.

    Each such sentence begins with the argument's pointer.
    """
    stated = packet.stated_first if isinstance(packet, OriginPacket) else ()
    pointers = (part.pointer for part in packet.provenance)
    return frozenset(one for one in pointers if any(text.startswith(f"{one} ") for text in stated))


def read_packet(body: bytes) -> Packet:
    """Parse a frozen packet into the class of its kind."""
    if b'"kind":"budget"' in body:
        return BudgetPacket.model_validate_json(body)
    if b'"stated_first":' in body:
        return OriginPacket.model_validate_json(body)
    return Packet.model_validate_json(body)


def packet_bytes(packet: Packet) -> bytes:
    """Encode the canonical form that is stored, shown and hashed.

    A packet without a proposal, or without ordinary values, has the same bytes as before these fields
    existed.
    """
    left_out = {
        name
        for name, nothing in (("proposal", None), ("ordinary", ()))
        if getattr(packet, name, nothing) == nothing
    }
    return canonical_typed({name: value for name, value in packet.__dict__.items() if name not in left_out})


def packet_digest(body: bytes) -> str:
    """Compute the digest that a decision names: SHA-256 of the packet as stored."""
    return compute_digest("packet", body)
