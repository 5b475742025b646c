"""A furnished tenant, a worker of this test's own, and the few moves that journeys are made of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from approvals.actions import DecisionInput, decide_request
from approvals.core.lifecycle import DecisionKind
from approvals.models import Request
from orchestrator.core.common.goal import Goal
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.runs.actions.submit import Submission, Submitter, submit_task
from orchestrator.runs.models.run import Run
from orchestrator.runs.queries.replays import replay_stored_run
from orchestrator.runs.queries.runs import result_of
from orchestrator.worker.process import make_worker
from orchestrator.worker.run_loop import Worker
from tenancy.db.tenant_context import tenant_transaction
from tests.conftest import House
from tests.factories.furniture import furnish_like_the_verb
from tests.factories.tenancy import Cast, Somebody
from traces.core.integrity.chain import Head
from traces.models import Event
from traces.verification import VerificationFault, verify_run

LOOP = EffectLoop()


def fresh_worker() -> Worker:
    """A worker with gateways of its own on the loop that all workers of this test process share."""
    return make_worker(LOOP)


@contextmanager
def company_at(url: str) -> Iterator[None]:
    """The demo company's address for the tools, as the supervisor would give it."""
    before = os.environ.get("INTERLOCK_DEMO_URL")
    os.environ["INTERLOCK_DEMO_URL"] = url
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("INTERLOCK_DEMO_URL", None)
        else:
            os.environ["INTERLOCK_DEMO_URL"] = before


@dataclass(kw_only=True)
class World:
    """A furnished house with one worker."""

    house: House
    worker: Worker = field(default_factory=fresh_worker)

    @property
    def id(self) -> UUID:
        """The tenant's id."""
        return self.house.tenant.id

    @property
    def people(self) -> Cast:
        """The cast."""
        return self.house.people

    def submit(self, workflow: str, objective: str, *, by: Somebody | None = None, **more: Any) -> UUID:
        """Submit a task; the run's id. `inputs`, `budget`, `boundary` … as keywords."""
        who = by or self.people.submitter
        key: str = more.pop("key", "")
        boundary: str | None = more.pop("boundary", None)
        budget: dict[str, Decimal] = {name: Decimal(v) for name, v in more.pop("budget", {}).items()}
        submitter = Submitter(
            principal=who.principal.id, owner=who.person.id, scopes=("submit", "read", "operate")
        )
        asked = Submission(
            workflow=workflow, goal=Goal(objective=objective, **more), budget=budget, idempotency_key=key,
            boundary=boundary,
        )  # fmt: skip
        return submit_task(self.id, submitter, asked).run

    def drive(self, run: UUID, worker: Worker | None = None) -> Run:
        """Let a worker drive the run as far as it goes."""
        (worker or self.worker).advance(run)
        return self.run(run)

    def run(self, run: UUID) -> Run:
        """The run as it stands."""
        with tenant_transaction(self.id):
            return Run.objects.get(id=run)

    def open_requests(self, run: UUID) -> list[Request]:
        """What the run asks of people, oldest first."""
        with tenant_transaction(self.id):
            return list(Request.objects.filter(run_id=run, status="pending").order_by("created_at"))

    def decide(self, request: Request, who: Somebody, kind: str = "approve", **more: Any) -> Request:
        """One person's word."""
        return decide_request(
            self.id, request.id, who.principal.id, DecisionInput(kind=DecisionKind(kind), **more)
        )

    def approve_all(self, run: UUID) -> Run:
        """Drive, approve what is asked (with a second person where two are needed), until nothing is
        asked."""
        while True:
            found = self.drive(run)
            requests = self.open_requests(run)
            if not requests:
                return found
            for request in requests:
                self.decide(request, self.people.approver)
                if self.open_requests(run):
                    self.decide(request, self.people.second_approver)

    def kinds(self, run: UUID) -> list[str]:
        """The kinds of the run's events, in order."""
        with tenant_transaction(self.id):
            return list(Event.objects.filter(run_id=run).order_by("seq").values_list("kind", flat=True))

    def said(self, run: UUID, kind: str) -> list[dict[str, Any]]:
        """What the run's events of one kind say, in order."""
        with tenant_transaction(self.id):
            events = Event.objects.filter(run_id=run, kind=kind).order_by("seq")
            return [orjson.loads(bytes(event.body)) for event in events]

    def result(self, run: UUID) -> dict[str, Any]:
        """The run's result document."""
        found = self.run(run)
        with tenant_transaction(self.id):
            return result_of(found) or {}

    def faults(self, run: UUID) -> list[VerificationFault]:
        """What `trace verify` finds."""
        found = self.run(run)
        head = Head(
            run=run,
            record_number=found.record_number,
            record_hash=bytes(found.record_hash),
            event_seq=found.event_seq,
            event_hash=bytes(found.event_hash),
        )
        with tenant_transaction(self.id):
            return verify_run(run, head)

    def sound(self, run: UUID) -> None:
        """The run's trace verifies, and it replays to the same records."""
        assert self.faults(run) == []
        report = replay_stored_run(self.id, run)
        assert report.matches, report


def make_world(house: House) -> World:
    """Furnish the house."""
    furnish_like_the_verb(house.tenant.id)
    return World(house=house)
