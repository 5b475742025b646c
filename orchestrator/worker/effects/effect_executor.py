"""Performing effects: outside any transaction, each under its deadline; failures become events
(docs/ring.md, R-TOOL-11).

A batch of read-only calls runs side by side on the process's asyncio thread; local tools, the scripted
model and a mutating call run one at a time. A mutating call that honours no key is sent only by whoever
inserts its Dispatch row.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from time import sleep
from typing import Protocol

from django.db import connection

from orchestrator.actions.circuit_breakers import TenantCircuits
from orchestrator.actions.claimed_run import ClaimedRun
from orchestrator.actions.model_queue import RunLines
from orchestrator.actions.remote_resolver import TenantRemotes
from orchestrator.actions.send_once import claim_dispatch
from orchestrator.actions.workspace import RunFiles
from orchestrator.core.domain.call_outcomes import Fate, Look
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import LOOKED, AnyEvent, Recovered, ToolFailed
from orchestrator.core.llm.model_wait import has_patience
from orchestrator.core.tools.schema_drift import fault_of
from orchestrator.gateways.async_executor import EffectLoop
from orchestrator.gateways.database_authorization import DatabasePermit
from orchestrator.gateways.effect_result import Found, Performed
from orchestrator.gateways.llm.client import ModelGateway
from orchestrator.gateways.tools.dispatcher import ToolGateway
from orchestrator.worker.effects.payload_loader import body_of
from orchestrator.worker.effects.sealed_arguments import SealedOfRun, vault_of_reply
from orchestrator.worker.effects.sent_request import Request
from traces.live.text_deltas import RunAudience

LOOK_AGAIN_SECONDS = 2.0
# Between the attempts at a repetition that could not be sent; one that is put in doubt instead asks a person.
REPEAT_AFTER_SECONDS = (0.5, 1.0, 2.0, 4.0)
ABSENT = f"{LOOKED}: not there"


class Fault(Protocol):
    """A test's hook at a yield point."""

    def __call__(self, point: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What came of effects: events with a provisional time, and their content by digest.

    `overslept`: a read-only call was held back for the moment. The run is then left as it is, with its
    intents, and recovery repeats them under the next lease.
    """

    events: tuple[AnyEvent, ...] = ()
    bodies: Mapping[str, bytes] = field(default_factory=dict)
    overslept: bool = False


@dataclass(slots=True, kw_only=True)
class Performer:
    """The gateways and the loop that runs their waiting parts."""

    loop: EffectLoop
    models: ModelGateway
    tools: ToolGateway

    def perform(
        self,
        hand: ClaimedRun,
        effects: tuple[CallModel | CallTool, ...],
        fault: Fault,
        *,
        again: bool = False,
    ) -> Outcomes:
        """Perform all and wait for all. `again`: a worker that died may have sent it before."""
        at = hand.manifest.admitted_at
        if len(effects) > 1:
            return self._side_by_side(hand, effects, at)
        effect = effects[0]
        if isinstance(effect, CallTool) and effect.mutating:
            return self._mutate(hand, effect, at, fault, again=again)
        return merge_outcomes([self._one(hand, effect).result()], at)

    def _side_by_side(
        self, hand: ClaimedRun, effects: tuple[CallModel | CallTool, ...], at: datetime
    ) -> Outcomes:
        started = [self._one(hand, effect) for effect in effects]
        return merge_outcomes([future.result() for future in started], at)

    def _one(self, hand: ClaimedRun, effect: CallModel | CallTool) -> "Future[Performed]":
        """Start one effect; a future of its outcome. Gateways never raise: what goes wrong is an outcome."""
        known = hand.permits.pop(effect.id, None)
        permit = DatabasePermit(hand.tenant, hand.run, effect.id, hand.fence, known)
        circuits = _circuits_of(hand)
        if isinstance(effect, CallModel):
            profile = next(p for p in hand.manifest.pins.profiles if p.name == effect.profile)
            request = body_of(hand, effect.request)
            return self.models.start(
                self.loop,
                effect,
                request,
                profile,
                hand.salt,
                permit,
                circuits=circuits,
                tenant=hand.tenant,
                lines=RunLines(
                    tenant=hand.tenant,
                    run=hand.run,
                    fence=hand.fence,
                    waits=hand.state.away is not None,
                    patient=has_patience(hand.graph, hand.manifest),
                ),
                before_wait=connection.close,
                audience=RunAudience(hand.run, effect.id),
                vault=vault_of_reply(hand),
            )
        arguments = body_of(hand, effect.arguments)
        spec = hand.manifest.pins.by_name[effect.tool]
        return self.tools.start(
            self.loop,
            effect,
            arguments,
            spec,
            hand.salt,
            permit,
            circuits=circuits,
            remotes=TenantRemotes(hand.tenant),
            tenant=hand.tenant,
            files=RunFiles(hand.tenant, hand.run),
            before_wait=connection.close,
            sealed=SealedOfRun(hand),
        )

    def _mutate(
        self, hand: ClaimedRun, effect: CallTool, at: datetime, fault: Fault, *, again: bool
    ) -> Outcomes:
        """Send one mutating call. What is done where no result came of it says the table of
        orchestrator/core/domain/call_outcomes.py."""
        request = Request(hand=hand, effect=effect, again=again)
        if request.looks_first():
            looked = self.resolve(hand, effect, at)
            (found,) = looked.events
            assert isinstance(found, Recovered)
            if not request.may_follow(found):
                return looked
        fault("before_dispatch")
        if not effect.honours_keys and not claim_dispatch(hand.tenant, hand.run, effect.id, "started"):
            return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="abandoned"),))
        fault("dispatched")
        performed = self._one(hand, effect).result()
        fault("sent")
        event = performed.event(at)
        for wait in REPEAT_AFTER_SECONDS if again else ():
            if not _is_transiently_unsent(event):
                break
            sleep(wait)
            performed = self._one(hand, effect).result()
            event = performed.event(at)
        if not isinstance(event, ToolFailed):
            return merge_outcomes([performed], at)
        if held_back(event) and not request.before:
            # Nobody else can know it, so it is said: recovery would have to ask what a `started` row means.
            return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="abandoned"),))
        return self._without_result(request, performed, event)

    def _without_result(self, request: Request, performed: Performed, event: ToolFailed) -> Outcomes:
        """What is said of a change that brought no result, once it was looked up where that says more."""
        came = request.came(event)
        became = request.fate(came)
        if became is Fate.LOOK_UP:
            looked = self.resolve(request.hand, request.effect, event.at, performed=performed)
            (found,) = looked.events
            assert isinstance(found, Recovered)
            if found.resolution == "found":
                return looked
            look = Look.ABSENT if found.detail == ABSENT else Look.UNKNOWN
            became = request.fate(came._replace(look=look))
            if became in (Fate.REPEAT, Fate.IN_DOUBT):
                return looked
            event = event.evolve(look=look)
        elif became is Fate.IN_DOUBT:
            return Outcomes(events=(request.doubted(event.at, performed.unread),), bodies=performed.bodies)
        return Outcomes(events=(request.told(event),), bodies=performed.bodies)

    def resolve(
        self,
        hand: ClaimedRun,
        effect: CallTool,
        at: datetime,
        *,
        late: bool = False,
        performed: Performed | None = None,
    ) -> Outcomes:
        """What became of a call that was sent and brought no result: found, surely not, or in doubt
        (R-TOOL-9). `performed` is what it brought instead."""
        unread = performed.unread if performed is not None else None
        bodies = performed.bodies if performed is not None else {}
        said = Recovered(at=at, effect=effect.id, resolution="in_doubt", unread=unread)
        if not effect.lookup:
            return Outcomes(events=(said,), bodies=bodies)
        found = self.look_up(hand, effect)
        if found.answered and found.observation is None and not effect.conclusive and not late:
            # It may still be under way: what was sent is given the time that its intent allows for.
            sleep(LOOK_AGAIN_SECONDS)
            found = self.look_up(hand, effect)
        if found.observation is not None:
            spec = hand.manifest.pins.by_name[effect.tool]
            odd = fault_of(spec, found.bodies[found.observation])
            named = said.evolve(detail=f"{LOOKED}: found" + (f", and {odd}"[:150] if odd else ""))
            if not odd:
                named = named.evolve(resolution="found", observation=found.observation, size=found.size)
            return Outcomes(events=(named,), bodies={**bodies, **found.bodies})
        sure = found.answered and effect.conclusive
        detail = ABSENT if found.answered else f"{LOOKED}: {found.why}"[:200]
        ended = said.evolve(resolution="abandoned" if sure else "in_doubt", detail=detail)
        return Outcomes(events=(ended,), bodies=bodies)

    def look_up(self, hand: ClaimedRun, effect: CallTool, *, late: bool = False) -> Found:
        """Ask the tool what became of a change; `late` after the end of its run. Raises ContentMissing."""
        return self.tools.look_up(
            self.loop,
            effect,
            body_of(hand, effect.arguments),
            hand.manifest.pins.by_name[effect.tool],
            hand.salt,
            DatabasePermit(hand.tenant, hand.run, effect.id, hand.fence, look=True, late=late),
            circuits=_circuits_of(hand),
            remotes=TenantRemotes(hand.tenant),
            tenant=hand.tenant,
            before_wait=connection.close,
            sealed=SealedOfRun(hand),
        )


def _circuits_of(hand: ClaimedRun) -> TenantCircuits:
    return TenantCircuits(hand.tenant, hand.circuits, run=hand.run, fence=hand.fence)


def _is_transiently_unsent(event: AnyEvent) -> bool:
    """Whether a call was not sent for a reason that may pass: then a repetition waits a moment."""
    return isinstance(event, ToolFailed) and event.transient and not event.sent and not held_back(event)


def merge_outcomes(performed: list[Performed], at: datetime) -> Outcomes:
    """The outcomes of several effects as one."""
    bodies: dict[str, bytes] = {}
    for one in performed:
        bodies.update(one.bodies)
    events = tuple(one.event(at) for one in performed)
    return Outcomes(events=events, bodies=bodies, overslept=any(map(held_back, events)))


def held_back(event: AnyEvent) -> bool:
    """Whether the second wall held a call back for the moment: it was not sent, and nothing forbids it.

    A worker that slept through its lease or its deadline comes here; a run must not fail for that.
    """
    return (
        isinstance(event, ToolFailed)
        and event.error == "refused_by_wall"
        and event.transient
        and not event.sent
    )
