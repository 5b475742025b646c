"""One request for a reviewer: the frozen packet, and what has happened since (R-APPR-2).

All functions run in the tenant's context.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from approvals.core.allowed_decisions import list_allowed_decisions
from approvals.core.argument_display import (
    Argument,
    ArgumentDifference,
    TypedConfirmation,
    diff_shown_arguments,
    secret_pointers,
    shown_arguments,
    to_type,
    without_secrets,
)
from approvals.core.lifecycle import AGREEING, DecisionKind, RequestStatus
from approvals.core.packet import Packet, alarming_pointers, read_packet
from approvals.core.policy import Decider
from approvals.core.quorum import count_agreeing_people
from approvals.models import Decision, Request
from approvals.ports import CallShape, asking_runs
from approvals.queries.countable_votes import counting_votes
from approvals.queries.inbox import NamedDecision, Row, rows_of
from approvals.queries.people import names_of
from tenancy.db.clock import database_now
from traces.models import Event

BEFORE: Final = 3
LAST_EVENTS: Final = 5
LOOKED_AT: Final = 400
AN_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvent:
    """One of the run's last events."""

    seq: int
    at: datetime
    words: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Edited arguments that a person agreed to; others agree by submitting the same edit.

    `agreed` is the number of people who have.
    """

    name: str
    at: datetime
    arguments: Any
    decision: Decision
    agreed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierDecision:
    """An earlier decision on the same tool, with its arguments."""

    request: Request
    said: NamedDecision
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """All information for a decision. `arguments` is the exact value, `shown` its leaves for display."""

    row: Row
    packet: Packet
    arguments: Any
    shown: tuple[Argument, ...]
    sources: Mapping[str, int]
    shape: CallShape | None
    secrets: tuple[str, ...]
    typed: TypedConfirmation | None
    edits: tuple[Edit, ...]
    history: tuple[RecentEvent, ...]
    before: tuple[EarlierDecision, ...]
    approved_lately: int
    now: datetime

    @property
    def request(self) -> Request:
        """The request of this card."""
        return self.row.request

    @property
    def safe(self) -> Any:
        """The arguments with a mark in place of anything that looks like a secret."""
        return without_secrets(self.arguments)

    @property
    def seen_arguments(self) -> str:
        """The redacted arguments as JSON, kept by the page to detect later changes."""
        return orjson.dumps(self.safe, option=orjson.OPT_SORT_KEYS).decode()

    @property
    def late(self) -> bool:
        """Return whether the request has expired or its time is up."""
        request = self.request
        return request.status == RequestStatus.EXPIRED or (
            self.row.is_open and self.now >= request.expires_at
        )

    @property
    def decidable(self) -> bool:
        """Return whether this reader may decide it now."""
        free = self.row.is_open and not self.row.stands and not self.late
        return free and self.row.refusal is None and not self.row.voted

    @property
    def allowed_decisions(self) -> tuple[DecisionKind, ...]:
        """The decisions possible on the request."""
        return list_allowed_decisions(self.packet)

    @property
    def returnable(self) -> bool:
        """Return whether the request can be sent back to its proposer."""
        return DecisionKind.REVISE in self.allowed_decisions

    @property
    def said_before(self) -> tuple[str, ...]:
        """The comments of people on the proposals sent back, with marks in place of secrets."""
        proposal = self.packet.proposal
        return () if proposal is None else tuple(without_secrets(words) for words in proposal.words)

    @property
    def answer(self) -> str:
        """The text that the agent wrote with the call, with marks in place of secrets."""
        return "" if self.packet.proposal is None else str(without_secrets(self.packet.proposal.answer))

    @property
    def anew(self) -> tuple[ArgumentDifference, ...]:
        """The places where this proposal differs from the one that it replaces.

        Secrets are distinguished by their fingerprints.
        """
        previous = self.packet.previous_arguments
        return () if previous is None else diff_shown_arguments(orjson.loads(previous), self.arguments)

    @property
    def editable(self) -> bool:
        """Return whether a form can edit the arguments."""
        return self.shape is not None and DecisionKind.EDIT in self.allowed_decisions


def card_of(request: Request, decider: Decider) -> Card:
    """Build the card of a request for one reader."""
    packet = read_packet(bytes(request.packet))
    arguments = orjson.loads(packet.arguments) if packet.arguments else None
    (row,) = rows_of([request], decider)
    shape = asking_runs().shape(request.run_id, request.tool) if request.tool else None
    said = list(Decision.objects.filter(request_id=request.id).order_by("at", "id"))
    now = database_now()
    return Card(
        row=row,
        packet=packet,
        arguments=arguments,
        shown=_build_shown_arguments(packet, arguments, shape),
        sources=_load_fact_events(request, packet),
        shape=shape,
        secrets=secret_pointers(arguments) if packet.arguments else (),
        typed=_build_typed_confirmation(request, arguments),
        edits=_list_edits(request, said),
        history=_list_recent_events(request),
        before=_list_previous_decisions(request),
        approved_lately=_approved_lately(request, decider, now - AN_HOUR),
        now=now,
    )


def _build_shown_arguments(packet: Packet, arguments: Any, shape: CallShape | None) -> tuple[Argument, ...]:
    if not packet.arguments:
        return ()
    sensitive = shape.sensitive if shape is not None else ()
    return shown_arguments(arguments, packet.provenance, sensitive, alarming_pointers(packet))


def _build_typed_confirmation(request: Request, arguments: Any) -> TypedConfirmation | None:
    return to_type(
        request.risk, has_amount=request.has_amount, amount=request.amount, arguments=arguments,
        tool=request.tool,
    )  # fmt: skip


def _list_edits(request: Request, said: Sequence[Decision]) -> tuple[Edit, ...]:
    """List the edits that were agreed to, each once, by their first proposer."""
    names = names_of({decision.principal for decision in said})
    found: dict[bytes, Edit] = {}
    votes = counting_votes(request, said)
    for decision in said:
        if decision.arguments is None:
            continue
        other = orjson.loads(body := bytes(decision.arguments))
        found.setdefault(body, Edit(
            name=names.get(decision.principal, "somebody"), at=decision.at, arguments=other,
            decision=decision, agreed=count_agreeing_people(votes, body),
        ))  # fmt: skip
    return tuple(found.values())


def _load_fact_events(request: Request, packet: Packet) -> dict[str, int]:
    """Map each fact that the packet refers to onto the event in which it was observed."""
    wanted = {part.reference for part in packet.provenance} | {part.fact for part in packet.evidence}
    kinds = ("call_observed", "fact_committed")
    rows = list(Event.objects.filter(run_id=request.run_id, kind__in=kinds).order_by("-seq")[:LOOKED_AT])
    calls: dict[str, int] = {}
    found: dict[str, int] = {}
    for event in reversed(rows):
        body = orjson.loads(bytes(event.body))
        if event.kind == "call_observed":
            calls[body["call"]] = event.seq
        elif body["fact"] in wanted:
            found[body["fact"]] = calls.get(body["call"], event.seq)
    return found


def _list_recent_events(request: Request) -> tuple[RecentEvent, ...]:
    rows = list(Event.objects.filter(run_id=request.run_id).order_by("-seq")[:LAST_EVENTS])
    return tuple(
        RecentEvent(
            seq=event.seq, at=event.at, words=event.kind.replace("_", " ").capitalize(),
            detail=_format_event_detail(orjson.loads(bytes(event.body))),
        )
        for event in reversed(rows)
    )  # fmt: skip


def _format_event_detail(body: dict[str, Any]) -> str:
    named = (body.get(name) for name in ("tool", "fact", "status", "decision", "reason", "awaiting"))
    return " · ".join(text for text in named if isinstance(text, str) and text)


def _list_previous_decisions(request: Request) -> tuple[EarlierDecision, ...]:
    """List the last few decisions on the same tool."""
    if not request.tool:
        return ()
    decided = Request.objects.filter(tool=request.tool, status=RequestStatus.DECIDED.value, kind=request.kind)
    rows = list(decided.exclude(id=request.id).order_by("-settled_at", "-id")[:BEFORE])
    found = []
    for row in rows_of(rows, None):
        last, packet = row.ended_by, orjson.loads(bytes(row.request.packet))
        if last is None:
            continue
        then = without_secrets(orjson.loads(packet["arguments"])) if packet["arguments"] else None
        found.append(EarlierDecision(request=row.request, said=last, arguments=then))
    return tuple(found)


def _approved_lately(request: Request, decider: Decider, since: datetime) -> int:
    """Count how often this reader approved this tool in the last hour (R-APPR-10)."""
    if not request.tool:
        return 0
    own = Decision.objects.filter(owner=decider.owner, kind__in=AGREEING, at__gte=since)
    return own.filter(request__tool=request.tool).count()
