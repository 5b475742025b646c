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
from typing import Literal, Protocol

from django.db import connection

from orchestrator.actions.circuits import TenantCircuits
from orchestrator.actions.dispatching import dispatch
from orchestrator.actions.hand import Hand
from orchestrator.actions.remotes import TenantRemotes
from orchestrator.actions.workspace import RunFiles
from orchestrator.core.effects import CallModel, CallTool
from orchestrator.core.events import LOOKED, AnyEvent, Recovered, ToolFailed
from orchestrator.gateways.effects_loop import EffectLoop
from orchestrator.gateways.llm.gateway import ModelGateway
from orchestrator.gateways.outcome import Performed
from orchestrator.gateways.permits import DatabasePermit
from orchestrator.gateways.tools.dispatcher import ToolGateway
from orchestrator.runtime.contents import body_of
from orchestrator.runtime.opening_sealed import SealedOfRun
from traces.live.deltas import RunAudience

LOOK_AGAIN_SECONDS = 2.0
# Between the attempts at a repetition that could not be sent; one that is put in doubt instead asks a person.
REPEAT_AFTER_SECONDS = (0.5, 1.0, 2.0, 4.0)
ABSENT = f"{LOOKED}: not there"
UNCERTAIN = ("timeout", "crashed", "malformed", "unreachable")


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
        self, hand: Hand, effects: tuple[CallModel | CallTool, ...], fault: Fault, *, again: bool = False
    ) -> Outcomes:
        """Perform all and wait for all. `again`: a worker that died may have sent it before."""
        at = hand.manifest.admitted_at
        if len(effects) > 1:
            return self._side_by_side(hand, effects, at)
        effect = effects[0]
        if isinstance(effect, CallTool) and effect.mutating:
            return self._mutate(hand, effect, at, fault, again=again)
        return joined([self._one(hand, effect).result()], at)

    def _side_by_side(self, hand: Hand, effects: tuple[CallModel | CallTool, ...], at: datetime) -> Outcomes:
        started = [self._one(hand, effect) for effect in effects]
        return joined([future.result() for future in started], at)

    def _one(self, hand: Hand, effect: CallModel | CallTool) -> "Future[Performed]":
        """Start one effect; a future of its outcome. Gateways never raise: what goes wrong is an outcome."""
        known = hand.permits.pop(effect.id, None)
        permit = DatabasePermit(hand.tenant, hand.run, effect.id, hand.fence, known)
        circuits = TenantCircuits(hand.tenant, hand.circuits)
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
                before_wait=connection.close,
                audience=RunAudience(hand.run, effect.id),
                vault=hand.vault,
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

    def _mutate(self, hand: Hand, effect: CallTool, at: datetime, fault: Fault, *, again: bool) -> Outcomes:
        """Send one mutating call. Where nobody knows what became of it, look it up or say so."""
        fault("before_dispatch")
        if not effect.honours_keys and not dispatch(hand.tenant, hand.run, effect.id, "started"):
            return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="abandoned"),))
        fault("dispatched")
        performed = self._one(hand, effect).result()
        fault("sent")
        event = performed.event(at)
        for wait in REPEAT_AFTER_SECONDS if again else ():
            if not _away(event):
                break
            sleep(wait)
            performed = self._one(hand, effect).result()
            event = performed.event(at)
        if isinstance(event, ToolFailed) and event.sent and event.error in UNCERTAIN:
            # A key would make a repetition safe, but payments and sends are not repeated by themselves
            # (R-TOOL-10).
            return self.resolve(hand, effect, at)
        before = again or _sent_before(hand, effect)
        if performed.by_status and _doubts(effect, event, again=again, before=before):
            return self._looked_into(hand, effect, at, performed, alone=not before and not performed.busy)
        if again and isinstance(event, ToolFailed) and not event.sent:
            # That this worker did not send it says nothing of the one that died: what became of that is
            # looked up, or a person's to say.
            return self.resolve(hand, effect, at)
        if held_back(event):
            # Nobody else can know it, so it is said: recovery would have to ask what a `started` row means.
            return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="abandoned"),))
        return joined([performed], at)

    def _looked_into(
        self, hand: Hand, effect: CallTool, at: datetime, refusal: Performed, *, alone: bool
    ) -> Outcomes:
        """A change was turned away by a status: believed where a look-up says that it surely did not happen,
        as the refusal that it was, for sending it again would be refused again. `alone`: no other request
        under the same key can be under way; of a tool that honours keys not finding it is then enough."""
        outcomes = self.resolve(hand, effect, at)
        (event,) = outcomes.events
        if not isinstance(event, Recovered) or event.resolution == "found":
            return outcomes
        believed = effect.honours_keys and alone and event.detail == ABSENT
        return joined([refusal], at) if event.resolution == "abandoned" or believed else outcomes

    def resolve(self, hand: Hand, effect: CallTool, at: datetime, *, late: bool = False) -> Outcomes:
        """What became of a call that was sent and not answered: found, surely not, or in doubt (R-TOOL-9)."""
        if not effect.lookup:
            return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution="in_doubt"),))
        spec = hand.manifest.pins.by_name[effect.tool]
        found = self.tools.look_up(
            self.loop,
            effect,
            body_of(hand, effect.arguments),
            spec,
            hand.salt,
            DatabasePermit(hand.tenant, hand.run, effect.id, hand.fence, look=True),
            circuits=TenantCircuits(hand.tenant, hand.circuits),
            remotes=TenantRemotes(hand.tenant),
            tenant=hand.tenant,
            before_wait=connection.close,
            sealed=SealedOfRun(hand),
        )
        if found.observation is not None:
            event = Recovered(
                at=at, effect=effect.id, resolution="found", observation=found.observation, size=found.size,
                detail=f"{LOOKED}: found",
            )  # fmt: skip
            return Outcomes(events=(event,), bodies=found.bodies)
        if found.answered and not effect.conclusive and not late:
            # It may still be under way: what was sent is given the time that its intent allows for.
            sleep(LOOK_AGAIN_SECONDS)
            return self.resolve(hand, effect, at, late=True)
        sure = found.answered and effect.conclusive
        detail = ABSENT if found.answered else f"{LOOKED}: {found.why}"[:200]
        resolution: Literal["abandoned", "in_doubt"] = "abandoned" if sure else "in_doubt"
        return Outcomes(events=(Recovered(at=at, effect=effect.id, resolution=resolution, detail=detail),))


def _sent_before(hand: Hand, effect: CallTool) -> bool:
    """Whether an earlier attempt of the call may have reached somebody. One that surely was not sent leaves
    nothing to doubt."""
    unsent = next((call.unsent for call in hand.state.batch if call.effect == effect.id), 0)
    return effect.attempt - 1 > unsent


def _doubts(effect: CallTool, event: AnyEvent, *, again: bool, before: bool) -> bool:
    """Whether a status alone does not settle that a change was not made: it may stand in front of what was
    done all the same, or of a first request that is still under way. Who honours keys is asked where it can
    be; what its key was turned away for (401, 403) is sent again under the same key, once it may be, unless
    a worker that died may have sent it before. `before`: an earlier attempt may have been sent."""
    if not effect.honours_keys or again:
        return True
    looked = effect.lookup or before
    return looked and isinstance(event, ToolFailed) and event.error == "refused"


def _away(event: AnyEvent) -> bool:
    """Whether a call was not sent for a reason that may pass: then a repetition waits a moment."""
    return isinstance(event, ToolFailed) and event.transient and not event.sent and not held_back(event)


def joined(performed: list[Performed], at: datetime) -> Outcomes:
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
