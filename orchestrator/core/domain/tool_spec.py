"""One immutable tool version, as a run pins it (R-TOOL-1 to 3)."""

from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from orchestrator.core.common.frozen_model import FrozenModel


class Risk(StrEnum):
    """Risk classes, least first (R-TOOL-2)."""

    READ_ONLY = "read_only"
    LOCAL_WRITE = "local_write"
    NETWORK = "network"
    DELEGATED = "delegated"
    DESTRUCTIVE = "destructive"

    @property
    def rank(self) -> int:
        """Return the rank: 0 for the least risk, 4 for the greatest."""
        return RANKS[self]

    @property
    def is_gated(self) -> bool:
        """Return whether a call is split into propose, approve, execute."""
        return self.rank >= Risk.NETWORK.rank


RANKS = {risk: rank for rank, risk in enumerate(Risk)}


class Reversibility(StrEnum):
    """How an effect can be taken back (R-TOOL-3)."""

    PURE = "pure"
    REVERSIBLE = "reversible"
    COMPENSABLE = "compensable"
    IRREVERSIBLE = "irreversible"


class QuorumStep(FrozenModel):
    """A quorum: `approvers` distinct people decide if the amount is at most `up_to` (None: any amount).

    A step with a `currency` applies only to amounts in it; for an amount in any other currency the largest
    quorum applies.
    """

    up_to: Decimal | None = None
    currency: str | None = None
    approvers: int = Field(ge=1, le=5)


class ReadBack(FrozenModel):
    """A verifier that calls another, read-only tool and compares (R-TOOL-12).

    `arguments` maps the reader's argument to a JSON pointer into {"arguments": …, "result": …} of the
    verified call; `equal` maps a pointer into the reader's result to a pointer into the same document.
    """

    tool: str
    arguments: dict[str, str]
    equal: dict[str, str] = Field(default_factory=dict)


class Verifier(FrozenModel):
    """How a result is verified: its schema, a predicate over the payload, or a read-back call."""

    name: str
    equal: dict[str, str] = Field(default_factory=dict)
    read_back: ReadBack | None = None


class Compensation(FrozenModel):
    """How an effect is taken back, stated as a wanted end (R-TOOL-15).

    `arguments` maps the argument of the compensating `tool` to a JSON pointer into
    {"arguments": …, "result": …} of the action; `constants` are further arguments. `wanted` is a sentence
    with {argument} of the compensating call.
    """

    tool: str = Field(max_length=64)
    arguments: dict[str, str] = Field(default_factory=dict)
    constants: dict[str, str] = Field(default_factory=dict)
    wanted: str = Field(min_length=1, max_length=300)


class RemoteLookup(FrozenModel):
    """How an effect of a remote tool is found again after a crash, by a call that only reads (R-TOOL-9).

    `arguments` maps the look-up's argument to a JSON pointer into {"key": …, "arguments": …} of the call;
    `found` points to what stands in the answer where the effect happened, and is null, false or empty where
    it did not; an answer without that member says nothing. What it finds is given as the call's own
    answer. A server's look-up is the tool `tool` as it was admitted; a request's is a GET of `path` at the
    same origin.
    """

    tool: str = Field(default="", max_length=128)
    definition: str = Field(default="", max_length=64)
    path: str = Field(default="", max_length=1_000)
    arguments: dict[str, str] = Field(default_factory=dict)
    found: str = Field(default="", max_length=200)


class HttpRequest(FrozenModel):
    """A tool that is one HTTP request, declared without code (R-TOOL-20).

    `url` may hold `{argument}` in its path; `query` maps a parameter to an argument; `body` is the arguments
    that are used nowhere else, as JSON (`rest`), one argument (`field`, named by `body_field`), or nothing.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    url: str = Field(max_length=2_000)
    query: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: Literal["none", "rest", "field"] = "none"
    body_field: str = ""
    key_header: str = Field(default="Idempotency-Key", max_length=64)
    secret: str = Field(default="", max_length=64)
    secret_header: str = Field(default="Authorization", max_length=64)
    secret_form: str = Field(default="Bearer {secret}", max_length=100)


class Remote(FrozenModel):
    """The location of a tool that is not our own code; pinned with its version, so an approval covers it.

    `origin` is the destination, such as `https://api.example` or `stdio:files`; `definition` is the digest
    of the server's definition of the tool when an admin admitted it.
    """

    kind: Literal["mcp", "http"]
    origin: str = Field(max_length=300)
    server: str = Field(default="", max_length=32)
    tool: str = Field(default="", max_length=128)
    definition: str = Field(default="", max_length=64)
    request: HttpRequest | None = None
    lookup: RemoteLookup | None = None


class Egress(FrozenModel):
    """The addresses that a tool may be sent to by its arguments.

    `argument` points to the address; `allow` are the entries of the tenant's web list that the version was
    published with (orchestrator/core/tools/destinations.py). An empty `argument` means every argument, for
    a server that may use any address it receives: values shaped like an address, the arguments that are
    `marked`, and with `named` those whose names indicate one.
    """

    argument: str = Field(max_length=200)
    allow: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    named: bool = True


class ToolSpec(FrozenModel):
    """A tool version. Times are milliseconds, prices US$ per call; pointers are RFC 6901.

    `price_usd` None: the price of a call is unknown, which does not mean zero (R-BUDGET-15). `facts` maps
    the name of a small closed value of the committed fact to a pointer into the result. `lookup`: the
    tool's gateway can find an effect by its key after a crash; `conclusive`: not finding it proves that it
    did not happen; `error_means_no_effect`: an answer that reports a failed call means that it changed
    nothing. `isolation` is how a call can be isolated: not at all, on a copy of what it would change, or in
    a sandbox of the machine; `isolated`: it is, in the runs that are pinned to this form
    (core/tools/isolation.py).
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length=64)
    version: int = Field(ge=1)
    description: str = Field(max_length=4_000)
    category: str
    capability: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    risk: Risk
    reversibility: Reversibility
    side_effects: str = ""
    approval: Literal["by_risk", "always", "never"] = "by_risk"
    scopes: tuple[str, ...] = ()
    timeout_ms: int = Field(default=10_000, ge=1, le=600_000)
    max_retries: int = Field(default=2, ge=0, le=10)
    honours_keys: bool = False
    lookup: bool = False
    conclusive: bool = False
    error_means_no_effect: bool = False
    price_usd: Decimal | None = Decimal(0)
    rate_per_minute: int = Field(default=20, ge=1)
    max_result_chars: int = Field(default=20_000, ge=100)
    verifier: Verifier | None = None
    parser_version: int = 1
    trust: Literal["trusted", "untrusted"] = "untrusted"
    sensitive: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    compensation: Compensation | None = None
    parallel_safe: bool = False
    external: bool = False
    local: bool = False
    equivalents: tuple[str, ...] = ()
    preconditions: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    effect_sentence: str = ""
    blast_radius: str = ""
    conflict_keys: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    facts: dict[str, str] = Field(default_factory=dict)
    amount: str | None = None
    currency: str | None = None
    quorum: tuple[QuorumStep, ...] = (QuorumStep(approvers=1),)
    queue: str = "operations"
    remote: Remote | None = None
    egress: Egress | None = None
    isolation: Literal["none", "copy", "machine"] = "none"
    isolated: bool = False

    @property
    def is_mutating(self) -> bool:
        """Return whether a call changes anything."""
        return self.reversibility is not Reversibility.PURE or self.risk is not Risk.READ_ONLY

    @property
    def needs_gate(self) -> bool:
        """Return whether a call needs a person's approval.

        Its class or its declaration decides; an irreversible call always needs approval.
        """
        if self.reversibility is Reversibility.IRREVERSIBLE or self.approval == "always":
            return True
        return self.approval == "by_risk" and self.risk.is_gated
