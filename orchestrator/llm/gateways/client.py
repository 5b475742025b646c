"""The single gateway to models of all providers. A failed call is an outcome, never an exception.

Spec: R-LOOP-9, R-BUDGET-17.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from django.db import Error

from orchestrator.core.common.model_profile import ModelProfile
from orchestrator.core.domain.effects import CallModel
from orchestrator.core.llm.model_wait import OUTAGE
from orchestrator.core.tools.circuit_breaker import (
    LONGEST_SUBJECT,
    BlockedCircuit,
    Ticket,
    model_silence_tells,
)
from orchestrator.llm.gateways.catalog import ModelEnvironment
from orchestrator.llm.gateways.credentials import Access, operators_access, tenants_access
from orchestrator.llm.gateways.live_text import PACE_SECONDS, Audience, LiveReply
from orchestrator.llm.gateways.model_queue import Lines
from orchestrator.llm.gateways.model_request import ModelCall
from orchestrator.llm.gateways.providers.scripted_provider import play_scenario, split_reply_text
from orchestrator.llm.gateways.response import build_failure_outcome
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.circuit_breaker_client import AdmittedCall, Circuits, LocalCircuits
from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.outbound.gateways.effect_result import (
    BeforeWait,
    EffectResult,
    do_nothing,
    make_completed_future,
)
from orchestrator.outbound.gateways.send_authorization import SendAuthorization, check_before_send
from traces.sealed_values import Vault

log = structlog.get_logger(__name__)
# Nothing was sent, so nothing was learned about the provider.
UNTOLD = ("no_key", "egress_refused")
UNHEALTHY = ("timeout", "server_error", "unavailable", "unreachable", "cut_off", "malformed")


class Remote(Protocol):
    """The signature of `perform_model_call` in llm/http_provider.py."""

    def __call__(
        self, loop: EffectLoop, access: Access, call: ModelCall
    ) -> Coroutine[Any, Any, EffectResult]: ...


@cache
def _load_remote_provider() -> Remote:
    """Import the HTTP provider on first use.

    The provider libraries take seconds to import; a deployment that only plays scenarios never loads them.
    """
    found: Remote = import_module("orchestrator.llm.gateways.providers.http_provider").perform_model_call
    return found


def load_remote_models() -> None:
    """Load the providers' libraries, so that the first model call does not wait for them."""
    _load_remote_provider()


class ModelGateway:
    """Performs CallModel. `environment` is called for each model call, so that a new key is used at once."""

    def __init__(self, environment: Callable[[], ModelEnvironment] = ModelEnvironment.from_settings) -> None:
        self._environment = environment
        self.circuits = LocalCircuits()

    def start(
        self,
        loop: EffectLoop,
        effect: CallModel,
        request: bytes,
        profile: ModelProfile,
        salt: bytes,
        permit: SendAuthorization,
        *,
        circuits: Circuits | None = None,
        tenant: UUID | None = None,
        lines: Lines | None = None,
        before_wait: BeforeWait = do_nothing,
        audience: Audience | None = None,
        vault: Vault | None = None,
    ) -> "Future[EffectResult]":
        """Start one call and return a future of its outcome (ModelReplied or ModelFailed).

        `request` is the neutral request's bytes. `circuits` are those of the deployment; without them the
        gateway keeps its own. `tenant` owns the run: a model that the tenant configured is called with the
        tenant's key. `lines` is the run's place in the model queues: without it the number of concurrent
        calls is unbounded. `before_wait` is called once it is certain that the caller will wait for the
        network: the caller releases its database connection there. A scripted reply is complete at once,
        unless a viewer in the `audience` is to see the reply being written. `vault` seals sensitive values
        in the arguments of the requested calls.
        """
        refused = check_before_send(permit)
        if refused is not None:
            detail = f"the second wall refused: {refused.reason}"
            return self._complete_call(
                profile,
                build_failure_outcome(
                    effect, salt, "refused_by_wall", transient=refused.transient, detail=detail
                ),
            )
        if profile.provider == "scripted":
            performed = play_scenario(effect, request, profile, salt, vault=vault)
            words = (
                split_reply_text(performed)
                if profile.streams and audience is not None and audience.there()
                else ()
            )
            if not words:
                return self._complete_call(profile, performed)
            before_wait()
            return loop.submit(self._recite(effect, profile, performed, words, audience))
        board, subject = circuits or self.circuits, subject_of(profile)
        bounded = lines if profile.at_once is not None else None
        if bounded is not None and not _enter_model_queue(bounded, effect, profile, subject):
            waits = build_failure_outcome(effect, salt, "model_busy", transient=True, detail=subject)
            return self._complete_call(profile, waits)
        own = board.admit("use", subject, timeout_ms=effect.timeout_ms)
        # The result of a model that one tenant configured, or of a tenant's own short timeout, is no
        # evidence about a provider for other tenants.
        alone = profile.own or isinstance(own, BlockedCircuit)
        ticket = own if alone else board.admit("model", subject, timeout_ms=effect.timeout_ms)
        if isinstance(own, Ticket) and isinstance(ticket, BlockedCircuit):
            AdmittedCall(circuits=board, ticket=own).tell(healthy=None, reason="")
        if isinstance(own, BlockedCircuit) or isinstance(ticket, BlockedCircuit):
            if bounded is not None:
                bounded.leave()
            if lines is not None:
                lines.stand_behind("use" if isinstance(own, BlockedCircuit) else "model", subject)
            turned_away = build_failure_outcome(effect, salt, "circuit_open", transient=True, detail=subject)
            wait = {**turned_away.fields, "retry_after_ms": _compute_wait_ms(own, ticket)}
            return self._complete_call(profile, replace(turned_away, fields=wait))
        before_wait()
        call = ModelCall(
            effect=effect, request=request, profile=profile, salt=salt, audience=audience, vault=vault
        )
        use, admitted = AdmittedCall(circuits=board, ticket=own), AdmittedCall(circuits=board, ticket=ticket)
        return loop.submit(
            self._in_turn(self._call(loop, call, use, admitted, tenant), admitted, lines, bounded)
        )

    async def _recite(
        self,
        effect: CallModel,
        profile: ModelProfile,
        performed: EffectResult,
        words: tuple[str, ...],
        audience: Audience | None,
    ) -> EffectResult:
        """Send a scripted reply to the audience as if it were being written.

        This takes only a part of the call's timeout.
        """
        utterance = LiveReply(audience)
        try:
            for part in words:
                utterance.add(part)
                await asyncio.sleep(min(PACE_SECONDS / 2, effect.timeout_ms / 10_000))
        finally:
            utterance.close()
        self._count(_choose_metric_label(profile), performed)
        return performed

    async def _access(self, call: ModelCall, tenant: UUID | None) -> Access:
        """Return the key and egress permission for the call.

        Raises: Error where the database cannot be asked.
        """
        if not call.profile.own:
            return operators_access(self._environment(), call.profile)
        if tenant is None:
            return Access(key=None, why="this model is asked for a tenant alone")
        return await asyncio.to_thread(tenants_access, tenant, call.profile)

    async def _perform_call(self, loop: EffectLoop, call: ModelCall, tenant: UUID | None) -> EffectResult:
        try:
            access = await self._access(call, tenant)
        except Error as error:
            detail = f"the key could not be looked up: {type(error).__name__}"
            return build_failure_outcome(call.effect, call.salt, "unreachable", transient=True, detail=detail)
        return await _load_remote_provider()(loop, access, call)

    async def _in_turn(
        self,
        asked: Coroutine[Any, Any, EffectResult],
        admitted: AdmittedCall,
        lines: Lines | None,
        bounded: Lines | None,
    ) -> EffectResult:
        """Run a call that holds a place in the model queue, and release the place in every case.

        The queue is then informed of the result: a successful probe has closed its circuit for the runs
        that wait behind it.
        """
        try:
            performed = await asked
        finally:
            if bounded is not None:
                await asyncio.to_thread(bounded.leave)
        if lines is not None and (lines.waits or admitted.ticket.probe):
            await asyncio.to_thread(_tell_lines, lines, admitted.ticket, performed.fields.get("error"))
        return performed

    async def _call(
        self,
        loop: EffectLoop,
        call: ModelCall,
        use: AdmittedCall,
        admitted: AdmittedCall,
        tenant: UUID | None,
    ) -> EffectResult:
        """Perform the call and report its result to both circuits.

        A cancelled call reports nothing; if it was the probe, its lease expires.
        """
        performed = await self._perform_call(loop, call, tenant)
        error = performed.fields.get("error")
        await admitted.tell_aside(healthy=_assess_health(call, error), reason=error or "")
        if over := _compute_overrun(call.effect, performed):
            subject = admitted.ticket.subject
            log.warning("model.overrun", profile=call.effect.profile, subject=subject, over=over)
            TALLY.add("model", _choose_metric_label(call.profile), "overrun")
            # Trip this tenant's circuit only: other tenants' requests may not be overcharged.
            await asyncio.to_thread(use.circuits.trip, "use", subject, "overrun")
        elif use.ticket is not admitted.ticket:
            await use.tell_aside(healthy=None if error else True, reason="")
        self._count(_choose_metric_label(call.profile), performed)
        return performed

    def _complete_call(self, profile: ModelProfile, performed: EffectResult) -> "Future[EffectResult]":
        self._count(_choose_metric_label(profile), performed)
        return make_completed_future(performed)

    def _count(self, label: str, performed: EffectResult) -> None:
        TALLY.add("model", label, str(performed.fields.get("error", "replied")))


def _tell_lines(lines: Lines, ticket: Ticket, error: str | None) -> None:
    """Inform the model queue of a call's result: of the probe, or of a run that has waited."""
    if ticket.probe and error in OUTAGE:
        lines.stand_behind_again(ticket.kind, ticket.subject)
        return
    if lines.waits:
        lines.leave()
    if ticket.probe and error is None:
        lines.call_all()


def _enter_model_queue(lines: Lines, effect: CallModel, profile: ModelProfile, subject: str) -> bool:
    """Return whether the call has its turn now."""
    most = profile.at_once or 1
    return lines.enter(subject, most, own=profile.own, timeout_ms=effect.timeout_ms)


def _choose_metric_label(profile: ModelProfile) -> str:
    """Return the metric label of a profile.

    Models of tenants share one label, because tenants can rename theirs at will.
    """
    return "own" if profile.own else profile.name


def _compute_wait_ms(*answers: Ticket | BlockedCircuit) -> int:
    return max(answer.wait_ms for answer in answers if isinstance(answer, BlockedCircuit))


def _compute_overrun(effect: CallModel, performed: EffectResult) -> dict[str, str]:
    """Return the usage that the provider reported beyond the reservation, by dimension (R-BUDGET-2)."""
    usage: Mapping[str, Decimal] = performed.fields.get("usage") or {}
    return {
        name: str(usage[name] - effect.reserve[name])
        for name in ("input_tokens", "output_tokens")
        if name in usage and name in effect.reserve and usage[name] > effect.reserve[name]
    }


def _assess_health(call: ModelCall, error: str | None) -> bool | None:
    """Return whether the provider worked; None where that is unknown.

    It is unknown where nothing was sent, or where the run's own timeout was too short to judge.
    """
    if error in UNTOLD:
        return None
    if error == "timeout" and not model_silence_tells(call.effect.timeout_ms, call.profile.timeout_ms):
        return None
    return error not in UNHEALTHY


def subject_of(profile: ModelProfile) -> str:
    """Return the name of a profile's circuit: the provider and its address, without credentials.

    For a model that the tenant configured the profile's name comes first.
    """
    if profile.own:
        return f"{profile.name}: {subject_of(profile.evolve(own=False))}"[:LONGEST_SUBJECT]
    if not profile.base_url:
        return profile.provider
    at = urlsplit(profile.base_url)
    return f"{profile.provider} {at.hostname or ''}{f':{at.port}' if at.port else ''}{at.path}"[
        :LONGEST_SUBJECT
    ]
