"""The actors around one run, and what each of them can do next."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from approvals.core.errors import ApprovalError
from approvals.models import Request
from orchestrator.commit.approval_timers import expire_gates_of
from orchestrator.core.common.errors import RunOver
from orchestrator.core.common.run_status import TERMINAL_STATUSES, Status
from orchestrator.runs.actions import run_signals
from orchestrator.runs.models.run import Run
from orchestrator.tenants.queries.cross_tenant import due_runs
from orchestrator.worker.run_loop import POISONED
from tests.doubles.company import Company
from tests.factories.tenancy import Somebody
from tests.factories.world import World
from tests.journeys.interleaving.clock import Clock
from tests.journeys.interleaving.puppet import Puppet

SERVICES = {"payments.refund": "payments", "mail.send": "mail"}
ROUNDS = 40
FAR = 16


@dataclass(frozen=True, kw_only=True)
class Word:
    """What a reviewer of this test said to a request; the test's own memory, no table of ours."""

    request: UUID
    tool: str
    who: UUID
    arguments: dict[str, Any]


@dataclass(kw_only=True)
class Stage:
    """One run with everybody who acts on it. `agreed` is every word of agreement that was accepted, `lost`
    the fence of every lease that died, by the version of the run that it held."""

    world: World
    company: Company
    clock: Clock
    puppets: dict[str, Puppet]
    run: UUID
    agreed: list[Word] = field(default_factory=list)
    intrusions: list[str] = field(default_factory=list)
    lost: dict[int, set[int]] = field(default_factory=dict)

    # -- workers and sweeper ---------------------------------------------------------------------------------

    def work(self, name: str, steps: int) -> None:
        """A worker goes on, or takes up the run as if a message had come; the sweeper looks around."""
        puppet = self.puppets[name]
        for _ in range(steps):
            if puppet.busy:
                puppet.step()
            else:
                puppet.begin(self._errand(name))

    def work_to(self, name: str, point: str) -> None:
        """A worker goes on to a certain yield point, or to its end."""
        puppet = self.puppets[name]
        self.work(name, 1)
        for _ in range(FAR):
            if not puppet.busy or puppet.at == point:
                return
            puppet.step()

    def crash_at(self, name: str, point: str) -> None:
        """A worker dies at a certain yield point; its lease lives on for a while."""
        self.work_to(name, point)
        self.kill(name)

    def kill(self, name: str) -> None:
        """The worker's process dies where it is."""
        if self.puppets[name].busy:
            self.puppets[name].kill()

    def _errand(self, name: str) -> Callable[[], object]:
        worker = self.puppets[name].worker
        if name == "sweeper":
            return lambda: self._sweep(worker.advance)
        return lambda: worker.advance(self.run)

    def _sweep(self, advance: Callable[[UUID], None]) -> None:
        """The sweep's tick on this test's own thread: what is due is expired and driven."""
        for run in due_runs(100):
            expire_gates_of(run)
            advance(run)

    # -- people ----------------------------------------------------------------------------------------------

    def review(self, who: str, kind: str) -> None:
        """A reviewer says a word to the oldest open request, if there is one; a refusal changes nothing."""
        requests = self.world.open_requests(self.run)
        if requests:
            self._say(requests[0], self._person(who), kind)

    def _say(self, request: Request, who: Somebody, kind: str) -> None:
        shown = orjson.loads(bytes(request.packet))
        if request.kind == "reconciliation":
            kind = "happened" if self.company.effects(SERVICES[request.tool]) else "not_happened"
        more: dict[str, Any] = {"packet_digest": request.packet_digest}
        if kind == "edit":
            if request.tool != "payments.refund":
                kind = "approve"
            else:
                more["arguments"] = {**arguments_of(shown), "amount": "10.00"}
        if kind == "revise":
            more["reason"] = "Say it in other words."
        if kind == "reject":
            self.intrusions.append("rejected")
        with suppress(ApprovalError):
            self.world.decide(request, who, kind, **more)
            if kind in ("approve", "edit"):
                said = more.get("arguments", arguments_of(shown))
                self.agreed.append(
                    Word(request=request.id, tool=request.tool, who=who.person.id, arguments=said)
                )

    def _person(self, who: str) -> Somebody:
        people = self.world.people
        return {"approver": people.approver, "second": people.second_approver}[who]

    def operate(self, verb: str) -> None:
        """The operator cancels, pauses or resumes; too late is a refusal."""
        who = self.world.people.operator.id
        with suppress(RunOver):
            getattr(run_signals, verb)(self.world.id, self.run, by=who, reason="by the schedule")
            if verb == "cancel":
                self.intrusions.append("cancelled")

    # -- time and world --------------------------------------------------------------------------------------

    def time_passes(self, what: str) -> None:
        """A lease dies, a gate's or a grant's time is up."""
        if what == "lease":
            self._lease_dies()
            return
        self.intrusions.append(f"{what} expired")
        {"gates": self.clock.gates_expire, "grants": self.clock.grants_expire}[what](self.run)

    def _lease_dies(self) -> None:
        """A run that loses its workers again and again is left to people, and what it was at is given up."""
        run = self.world.run(self.run)
        if run.lease_owner is not None:
            dead = self.lost.setdefault(run.version, set())
            dead.add(run.fence)
            if len(dead) == POISONED:
                self.intrusions.append("poison")
        self.clock.lease_dies(self.run)

    def company_fails(self, service: str, mode: str) -> None:
        """The next write to a service of the demo company goes wrong."""
        self.intrusions.append(f"{service} {mode}")
        self.company.faults(service, mode, times=1, on="writes")

    # -- the closing phase -----------------------------------------------------------------------------------

    def close(self) -> Run:
        """Everybody does what they should, in turn, until nothing moves: the run must come to its end by
        that.
        """
        for service in ("orders", "policy", "payments", "mail"):
            self.company.faults(service, "none")
        for puppet in self.puppets.values():
            puppet.finish()
        for _ in range(ROUNDS):
            run = self.world.run(self.run)
            if Status(run.status) in TERMINAL_STATUSES:
                break
            self._one_round(run)
        # What came too late for an ended run is recorded when a message wakes a worker for it, a dead lease
        # or not.
        self._lease_dies()
        self.puppets["a"].begin(self._errand("a"))
        self.puppets["a"].finish()
        return self.world.run(self.run)

    def clear(self) -> None:
        """Nobody stays on the stage: a worker that still sleeps dies there, and the run is no longer due."""
        for puppet in self.puppets.values():
            if puppet.busy:
                puppet.kill()
        if Status(self.world.run(self.run).status) not in TERMINAL_STATUSES:
            self.clock.park_the_rest()

    def _one_round(self, run: Run) -> None:
        self._lease_dies()
        if run.status == Status.PAUSED:
            self.operate("resume")
        for request in self.world.open_requests(self.run):
            self._say(request, self._person("approver"), "approve")
            self._say(request, self._person("second"), "approve")
        sweeper = self.puppets["sweeper"]
        sweeper.begin(self._errand("sweeper"))
        sweeper.finish()


def arguments_of(packet: dict[str, Any]) -> dict[str, Any]:
    """The exact arguments that a packet shows."""
    found = orjson.loads(packet["arguments"])
    assert isinstance(found, dict)
    return found
