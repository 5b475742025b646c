"""Executes effects outside any transaction, each under its deadline; failures become events.

A batch of read-only calls runs concurrently on the process's asyncio thread; local tools, the scripted
model and a mutating call run one at a time. A mutating call that honours no key is sent only by the worker
that inserts its Dispatch row.

Spec: docs/ring.md, R-TOOL-11.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from time import monotonic, sleep
from typing import Protocol

from django.db import connection

from orchestrator.commit.claimed_run import ClaimedRun
from orchestrator.commit.send_once import claim_dispatch
from orchestrator.core.domain.call_outcomes import Fate, LookUpMiss, fate_of
from orchestrator.core.domain.effects import CallModel, CallTool
from orchestrator.core.domain.run_events import LOOKED, AnyEvent, Recovered, ToolFailed
from orchestrator.core.llm.model_wait import has_patience
from orchestrator.core.tools.schema_drift import fault_of
from orchestrator.knowledge.actions.workspace import RunFiles
from orchestrator.llm.actions.model_queue import RunLines
from orchestrator.llm.gateways.client import ModelGateway
from orchestrator.outbound.actions import TenantCircuits
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.database_authorization import DatabasePermit
from orchestrator.outbound.gateways.effect_result import EffectResult, LookUpResult
from orchestrator.tools.actions.remote_resolver import TenantRemotes
from orchestrator.tools.gateways.dispatcher import ToolGateway
from orchestrator.worker.effects.payload_loader import body_of
from orchestrator.worker.effects.sealed_arguments import RunArgumentOpener, vault_of_reply
from orchestrator.worker.effects.sent_request import SentRequest
from orchestrator.worker.run_log import log_effect
from traces.live.text_deltas import RunAudience

LOOK_AGAIN_SECONDS = 2.0
# Delays between attempts to repeat a call that could not be sent; the alternative, in doubt, asks a person.
REPEAT_AFTER_SECONDS = (0.5, 1.0, 2.0, 4.0)
ABSENT = f"{LOOKED}: not there"


class Fault(Protocol):
    """A test's hook at a yield point."""

    def __call__(self, point: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The outcomes of effects: events with a provisional time, and their contents by digest.

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
        """Perform all effects and wait for all. `again`: a worker that died may have sent the call before."""
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

    def _one(self, hand: ClaimedRun, effect: CallModel | CallTool) -> "Future[EffectResult]":
        """Start one effect, whose end is logged, and return a future of its outcome."""
        started = monotonic()
        future = self._start(hand, effect)
        future.add_done_callback(partial(log_effect, hand, effect, hand.state.position, started))
        return future

    def _start(self, hand: ClaimedRun, effect: CallModel | CallTool) -> "Future[EffectResult]":
        """Start one effect and return a future of its outcome.

        Gateways never raise: an error is an outcome.
        """
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
            sealed=RunArgumentOpener(hand),
        )

    def _mutate(
        self, hand: ClaimedRun, effect: CallTool, at: datetime, fault: Fault, *, again: bool
    ) -> Outcomes:
        """Send one mutating call.

        The table of orchestrator/core/domain/call_outcomes.py defines the handling of a call without a
        result.
        """
        request = SentRequest(hand=hand, effect=effect, again=again)
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
            # Only this worker knows that the call was not sent, so it is recorded: recovery could not
            # interpret `started`.
            return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="abandoned"),))
        return self._without_result(request, performed, event)

    def _without_result(self, request: SentRequest, performed: EffectResult, event: ToolFailed) -> Outcomes:
        """Return the outcome of a change that brought no result, after a lookup if that can tell more."""
        came = request.came(event)
        became = fate_of(came)
        if became is Fate.LOOK_UP:
            looked = self.resolve(request.hand, request.effect, event.at, performed=performed)
            (found,) = looked.events
            assert isinstance(found, Recovered)
            if found.resolution == "found":
                return looked
            look = LookUpMiss.ABSENT if found.detail == ABSENT else LookUpMiss.UNKNOWN
            became = fate_of(came._replace(look=look))
            if became in (Fate.REPEAT, Fate.IN_DOUBT):
                return looked
            event = event.evolve(look=look)
        elif became is Fate.IN_DOUBT:
            return Outcomes(
                events=(request.build_doubt_event(event.at, performed.unread),), bodies=performed.bodies
            )
        return Outcomes(events=(request.told(event),), bodies=performed.bodies)

    def resolve(
        self,
        hand: ClaimedRun,
        effect: CallTool,
        at: datetime,
        *,
        late: bool = False,
        performed: EffectResult | None = None,
    ) -> Outcomes:
        """Determine the fate of a call that was sent and brought no result: found, abandoned or in doubt.

        `performed` is what the call returned instead. A lookup is made if the effect has one. [R-TOOL-9]
        """
        unread = performed.unread if performed is not None else None
        bodies = performed.bodies if performed is not None else {}
        said = Recovered(at=at, effect=effect.id, resolution="in_doubt", unread=unread)
        if not effect.lookup:
            return Outcomes(events=(said,), bodies=bodies)
        found = self.look_up(hand, effect)
        if found.answered and found.observation is None and not effect.conclusive and not late:
            # The call may still be under way: it is looked up once more after a pause.
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

    def look_up(self, hand: ClaimedRun, effect: CallTool, *, late: bool = False) -> LookUpResult:
        """Ask the tool for the fate of a change; `late` means after the end of its run.

        Raises: ContentMissing.
        """
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
            sealed=RunArgumentOpener(hand),
        )


def _circuits_of(hand: ClaimedRun) -> TenantCircuits:
    return TenantCircuits(hand.tenant, hand.circuits, run=hand.run, fence=hand.fence)


def _is_transiently_unsent(event: AnyEvent) -> bool:
    """Return whether a call was not sent for a transient reason, so that a repetition waits a moment."""
    return isinstance(event, ToolFailed) and event.transient and not event.sent and not held_back(event)


def merge_outcomes(performed: list[EffectResult], at: datetime) -> Outcomes:
    """Merge the outcomes of several effects into one."""
    bodies: dict[str, bytes] = {}
    for one in performed:
        bodies.update(one.bodies)
    events = tuple(one.event(at) for one in performed)
    return Outcomes(events=events, bodies=bodies, overslept=any(map(held_back, events)))


def held_back(event: AnyEvent) -> bool:
    """Return whether the second guard held a call back for the moment.

    Such a call was not sent, and nothing forbids it. This happens to a worker that slept through its lease or
    its deadline; a run must not fail because of that.
    """
    return (
        isinstance(event, ToolFailed)
        and event.error == "refused_by_wall"
        and event.transient
        and not event.sent
    )
