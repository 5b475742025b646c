"""Requests without a run: a desk where people are asked, and what was heard of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Barrier
from typing import Any, Literal
from unittest import mock
from uuid import UUID

import psycopg
from django.db import connections

from approvals import ports
from approvals.actions import (
    ConsumedGrant,
    DecisionInput,
    UnusableGrant,
    consume_grant,
    decide_request,
    open_request,
)
from approvals.actions.new_request import NewRequest
from approvals.core.lifecycle import DecisionKind
from approvals.core.packet import (
    ArgumentOrigin,
    Costs,
    Evidence,
    Packet,
    ToolShown,
    WhoMayDecide,
    packet_bytes,
    packet_digest,
)
from approvals.models import Decision, Request
from approvals.ports import EditJudgement
from approvals.signals import Settlement, request_settled
from tenancy.db.clock import database_now
from tenancy.db.ids import fresh_id
from tenancy.db.tenant_context import raw_cursor, tenant_transaction
from tenancy.models import Queue
from tests.conftest import House
from tests.factories.tenancy import Somebody
from traces.core.canonical import compute_digest, encode_canonical

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ASKED: Mapping[str, Any] = {"order_id": "A-1", "amount": "150.00"}
REFUND = ToolShown(
    name="payments.refund",
    version=1,
    digest="a" * 64,
    description="Refund an order",
    risk="destructive",
    reversibility="irreversible",
    effect="150.00 go to the customer",
    blast_radius="one order",
    rollback="none",
)


def action_of(arguments: Mapping[str, Any]) -> str:
    """The exact action that arguments make."""
    return compute_digest("action", encode_canonical(dict(arguments)))


def make_packet(**more: Any) -> Packet:
    """The packet of a refund of 150.00."""
    given: dict[str, Any] = {
        "request": str(UUID(int=1)),
        "run": str(UUID(int=2)),
        "kind": "action",
        "goal": "Refund A-1",
        "step": "refund",
        "call": "c1",
        "tool": REFUND,
        "arguments": encode_canonical(ASKED).decode(),
        "arguments_digest": compute_digest("arguments", encode_canonical(ASKED)),
        "provenance": (ArgumentOrigin(pointer="/amount", origin="trusted_fact", reference="order"),),
        "why": "The workflow's step refund asks for this call.",
        "evidence": (
            Evidence(fact="order", digest="d" * 64, source="orders.lookup", trust="trusted", value="150"),
        ),
        "costs": Costs(so_far=Decimal("0.02"), this=Decimal(0), left=Decimal("0.98")),
        "confidence": Decimal("0.9"),
        "scores": {"grounding": Decimal(1)},
        "recommended_action": "Look at every argument.",
        "who": WhoMayDecide(roles=("reviewer", "admin"), queue="finance", quorum=1),
        "trigger": "risk:destructive",
        "boundary": "b" * 64,
        "action_digest": action_of(ASKED),
        "expires_at": NOON,
    }
    return Packet(**{**given, **more})


def judge(_tenant: UUID, _run: UUID, _call: str, arguments: Any, /) -> EditJudgement:
    """Edited refunds, judged as the demo's payments are: one approver up to 200, two above, nothing odd."""
    if set(arguments) != set(ASKED):
        return EditJudgement(None, refusal="an order and an amount are wanted")
    amount = Decimal(arguments["amount"])
    return EditJudgement(
        encode_canonical(arguments),
        quorum=1 if amount <= 200 else 2,
        action_digest=action_of(arguments),
        amount=amount,
    )


Kind = Literal["action", "reconciliation", "clarification", "budget"]


@dataclass
class Desk:
    """Where a tenant's people are asked. `heard` is what was said of settled requests, in order; `superuser`
    is there where requests of runs that were begun again are asked for."""

    house: House
    heard: list[Settlement] = field(default_factory=list)
    superuser: psycopg.Connection | None = None

    @property
    def id(self) -> UUID:
        """The tenant's id."""
        return self.house.tenant.id

    def ask(
        self,
        *,
        kind: Kind = "action",
        run: UUID | None = None,
        call: str = "c1",
        arguments: Mapping[str, Any] = ASKED,
        quorum: int = 1,
        queue: str = "finance",
        risk: str = "destructive",
        submitter: Somebody | None = None,
        retrier: Somebody | None = None,
        expires_in: timedelta = timedelta(hours=1),
        grant_seconds: int = 600,
        answer_schema: Mapping[str, Any] | None = None,
        has_amount: bool = True,
        readable: bool = True,
        make_queue: bool = True,
        **shown: Any,
    ) -> Request:
        """A request for a refund, or a question to the submitter; `shown` is what else its packet says."""
        who, request, run = submitter or self.house.people.submitter, fresh_id(), run or fresh_id()
        action = action_of(arguments) if kind == "action" else ""
        asking = kind != "clarification"
        with tenant_transaction(self.id):
            now = database_now()
            if make_queue:
                Queue.objects.get_or_create(tenant_id=self.id, name=queue, defaults={"created_at": now})
            packet = make_packet(
                request=str(request),
                run=str(run),
                kind=kind,
                call=call,
                action_digest=action,
                arguments=encode_canonical(dict(arguments)).decode(),
                tool=REFUND if asking else None,
                who=WhoMayDecide(roles=("reviewer",), queue=queue, quorum=quorum),
                expires_at=now + expires_in,
                **shown,
            )
            body = packet_bytes(packet)
            new = NewRequest(
                id=request,
                run_id=run,
                call_id=call,
                kind=kind,
                packet=body,
                packet_digest=packet_digest(body),
                action_digest=action,
                tool=REFUND.name if asking else "",
                queue=queue,
                quorum=quorum,
                risk=risk if asking else "read_only",
                amount=Decimal(arguments["amount"]) if asking and has_amount and readable else None,
                has_amount=asking and has_amount,
                submitter=who.principal.id,
                submitter_owner=who.person.id,
                grant_seconds=grant_seconds,
                expires_at=now + expires_in,
                answer_schema=answer_schema,
            )
            made = open_request(self.id, new, now)
        return made if retrier is None else self._begun_again(made, retrier)

    def _begun_again(self, request: Request, retrier: Somebody) -> Request:
        """The request as that of a run which somebody had begun again: here there is no run."""
        assert self.superuser is not None
        with self.superuser.transaction():
            self.superuser.execute("SET LOCAL session_replication_role = replica")
            self.superuser.execute(
                "UPDATE approvals_request SET retriers = %s, retrier_owners = %s WHERE id = %s",
                [[retrier.principal.id], [retrier.person.id], request.id],
            )
        return self.again(request)

    def say(self, request: Request, who: Somebody | UUID, kind: str = "approve", **more: Any) -> Request:
        """One person's word, or that of a key by its principal."""
        principal = who if isinstance(who, UUID) else who.principal.id
        return decide_request(self.id, request.id, principal, DecisionInput(kind=DecisionKind(kind), **more))

    def again(self, request: Request) -> Request:
        """The request as it stands."""
        with tenant_transaction(self.id):
            return Request.objects.get(id=request.id)

    def said(self, request: Request) -> list[Decision]:
        """The words that were said to it."""
        with tenant_transaction(self.id):
            return list(Decision.objects.filter(request_id=request.id).order_by("at", "id"))

    def use(
        self, request: Request, *, action: str = action_of(ASKED), effect: str = "e" * 32, late: int = 0
    ) -> ConsumedGrant | UnusableGrant:
        """Use a grant up in a transaction of its own, `late` seconds from now."""
        with tenant_transaction(self.id):
            at = database_now() + timedelta(seconds=late)
            return consume_grant(
                self.id, request.id, effect_id=effect, action_digest=action, at=at, cursor=raw_cursor()
            )


@contextmanager
def open_desk(house: House) -> Iterator[Desk]:
    """A desk of this floor alone: nobody above hears of it, and edits are judged by `judge`."""
    desk = Desk(house)

    def hear(settlement: Settlement, **_: Any) -> None:
        desk.heard.append(settlement)

    with (
        mock.patch.object(request_settled, "receivers", []),
        mock.patch.object(ports, "_CHECK", [judge]),
    ):
        request_settled.sender_receivers_cache.clear()
        request_settled.connect(hear, weak=False)
        yield desk
    request_settled.sender_receivers_cache.clear()


def at_once(calls: Sequence[Callable[[], object]]) -> list[object]:
    """What the calls return or raise when each runs in a thread of its own, all let go at the same moment."""
    start = Barrier(len(calls))

    def one(call: Callable[[], object]) -> object:
        try:
            start.wait(10)
            return call()
        except Exception as error:  # noqa: BLE001 - what is raised is the outcome
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))
