"""Calls a tool: bounded, under its deadline, with its idempotency key. Never raises (R-TOOL-8 to 11, G5 to
G9).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol
from uuid import UUID

import structlog
from django.conf import settings
from pydantic import BaseModel

from orchestrator.core.domain.effects import CallTool
from orchestrator.core.domain.run_events import ToolAnswered
from orchestrator.core.domain.tool_spec import ToolSpec
from orchestrator.core.tools.circuit_breaker import BlockedCircuit
from orchestrator.core.tools.schema_drift import NO_JSON, fault_of
from orchestrator.outbound.gateways.async_executor import EffectLoop
from orchestrator.outbound.gateways.call_rate_limiter import CallRateLimiter
from orchestrator.outbound.gateways.circuit_breaker_client import AdmittedCall, Circuits, LocalCircuits
from orchestrator.outbound.gateways.counters import TALLY
from orchestrator.outbound.gateways.effect_result import (
    BeforeWait,
    ContentSink,
    EffectResult,
    LookUpResult,
    do_nothing,
    make_completed_future,
)
from orchestrator.outbound.gateways.monotonic_clock import read_monotonic_clock
from orchestrator.outbound.gateways.send_authorization import SendAuthorization, check_before_send
from orchestrator.tools.gateways.arguments import (
    ArgumentOpener,
    check_sendable,
    keywords_of,
    open_arguments,
    read_arguments,
)
from orchestrator.tools.gateways.call_failure import assess_health, build_failure, read_error
from orchestrator.tools.gateways.egress.service_client import (
    CallFailed,
    Environment,
    ServiceResponse,
    ToolContext,
    origin_of,
)
from orchestrator.tools.gateways.ports.workspace_port import CopiedFiles, Files
from orchestrator.tools.gateways.registry import LookUp, Tool, shipped_tools
from orchestrator.tools.gateways.result_encoding import encode_tool_result, is_isolated_call

log = structlog.get_logger(__name__)
LOOK_UP_PAUSES = (0.2, 0.8, 0.0)
AnyTool = Tool[Any, Any]


class Remotes(Protocol):
    """The lookup of remote tools, as they are configured at the moment of a call."""

    def find(self, spec: ToolSpec) -> AnyTool:
        """Return the tool behind a version with a `remote`.

        Raises: CallFailed; nothing was sent then.
        """
        ...


def from_environment(name: str) -> str | None:
    """Return an environment variable as it is now, else the setting of that name."""
    return os.environ.get(name) or getattr(settings, name, None)


class ToolGateway:
    """Performs CallTool. `tools` are the callable tools; `env` is asked for a service's origin at each
    call.
    """

    def __init__(
        self,
        *,
        tools: Callable[[], Mapping[str, AnyTool]] = shipped_tools,
        env: Environment = from_environment,
        pace: CallRateLimiter | None = None,
    ) -> None:
        self._tools, self._env = tools, env
        self.circuits = LocalCircuits()
        self._pace = pace or CallRateLimiter()

    def start(
        self,
        loop: EffectLoop,
        effect: CallTool,
        arguments: bytes,
        spec: ToolSpec,
        salt: bytes,
        permit: SendAuthorization,
        *,
        circuits: Circuits | None = None,
        remotes: Remotes | None = None,
        tenant: UUID | None = None,
        files: Files | None = None,
        before_wait: BeforeWait = do_nothing,
        sealed: ArgumentOpener | None = None,
    ) -> "Future[EffectResult]":
        """Start one call and return a future of its outcome (ToolAnswered or ToolFailed).

        `arguments` are the very bytes that were hashed and approved; `sealed` resolves references in them.
        A local tool's result is available at once; `before_wait` is called before anything that waits.
        `circuits` are those of the deployment; without them the gateway keeps its own. `remotes` looks up
        remote tools; `tenant` owns the rows that a tool may read; `files` changes the files of the run.
        """
        keeper = ContentSink(salt)
        refused = check_before_send(permit)
        if refused is not None:
            detail = f"the second wall refused: {refused.reason}".encode()
            failure = CallFailed("refused_by_wall", sent=False, transient=refused.transient, detail=detail)
            return make_completed_future(build_failure(effect, keeper, failure))
        try:
            arguments = open_arguments(arguments, spec, sealed, keeper)
            declared, values = self._prepare_call(effect, arguments, spec, permit.run, remotes)
            context = None
            if declared.waits:
                run, changes = permit.run, spec.is_mutating
                context = self._context(
                    loop, effect, arguments, declared, spec, tenant, run, files, mutating=changes
                )
            admitted = _admit_call(circuits or self.circuits, effect)
        except CallFailed as failure:
            return make_completed_future(build_failure(effect, keeper, failure))
        if context is None:
            performed = self._local(effect, declared, values, keeper, spec)
            admitted.tell(healthy=assess_health(performed, effect, spec), reason=read_error(performed))
            return make_completed_future(performed)
        before_wait()
        call = self._await_tool(effect, declared, values, context, keeper, spec)
        return loop.submit(self._report_result(call, spec, admitted, effect))

    def look_up(
        self,
        loop: EffectLoop,
        effect: CallTool,
        arguments: bytes,
        spec: ToolSpec,
        salt: bytes,
        permit: SendAuthorization,
        *,
        circuits: Circuits | None = None,
        remotes: Remotes | None = None,
        tenant: UUID | None = None,
        before_wait: BeforeWait = do_nothing,
        sealed: ArgumentOpener | None = None,
    ) -> LookUpResult:
        """Find out whether a call that was sent took effect, by the tool's look-up; three tries. Waits.

        The look-up uses the call's key. It passes the same guard as a call: permit, rate and circuit
        (R-BUDGET-17). Where one of them refuses, the result is unknown.
        """
        found = self._look_up_effect(
            loop, effect, arguments, spec, salt, permit, circuits=circuits or self.circuits, remotes=remotes,
            tenant=tenant, before_wait=before_wait, sealed=sealed,
        )  # fmt: skip
        TALLY.add(
            "look_up", spec.name, "found" if found.observation else "absent" if found.answered else found.why
        )
        return found

    def _look_up_effect(
        self,
        loop: EffectLoop,
        effect: CallTool,
        arguments: bytes,
        spec: ToolSpec,
        salt: bytes,
        permit: SendAuthorization,
        *,
        circuits: Circuits,
        remotes: Remotes | None,
        tenant: UUID | None,
        before_wait: BeforeWait,
        sealed: ArgumentOpener | None,
    ) -> LookUpResult:
        keeper = ContentSink(salt)
        refused = check_before_send(permit)
        if refused is not None:
            return LookUpResult(answered=False, why=f"refused by the wall: {refused.reason}")
        try:
            declared = self._find_declared_tool(spec, remotes)
            if declared.look_up is None:
                return LookUpResult(answered=False, why="no look-up")
            arguments = open_arguments(arguments, spec, sealed, keeper)
            values = read_arguments(declared, arguments)
            context = self._context(
                loop, effect, arguments, declared, spec, tenant, permit.run, None, mutating=False
            )
            self._check_rate((permit.run, spec.name, "look_up"), spec)
            admitted = _admit_call(circuits, effect)
        except CallFailed as failure:
            return LookUpResult(answered=False, why=failure.error)
        before_wait()
        found = loop.submit(_looked_up(declared.look_up, context, values, keeper)).result()
        admitted.tell(healthy=found.answered, reason=found.why)
        return found

    def _check_rate(self, caller: Hashable, spec: ToolSpec) -> None:
        """Count one call.

        Raises: CallFailed where the rate is exceeded.
        """
        wait = self._pace.take(caller, spec.rate_per_minute)
        if wait:
            detail = f"{spec.name} takes {spec.rate_per_minute} calls a minute; again in {wait} s".encode()
            raise CallFailed(
                "rate_limited", sent=False, transient=True, detail=detail, retry_after_ms=wait * 1_000
            )

    # -- one call
    # ------------------------------------------------------------------------------------------------

    def _find_declared_tool(self, spec: ToolSpec, remotes: Remotes | None) -> AnyTool:
        """Return the tool behind a pinned version, or raise CallFailed."""
        if spec.remote is not None and remotes is not None:
            return remotes.find(spec)
        declared = self._tools().get(spec.name) if spec.remote is None else None
        if declared is None:
            raise CallFailed("refused", sent=False, detail=f"there is no tool {spec.name} here".encode())
        if why := declared.lacks():
            raise CallFailed("refused", sent=False, detail=f"{spec.name} is not available: {why}".encode())
        return declared

    def _prepare_call(
        self, effect: CallTool, arguments: bytes, spec: ToolSpec, run: UUID, remotes: Remotes | None
    ) -> tuple[AnyTool, BaseModel]:
        if effect.tool != spec.name:
            raise CallFailed("refused", sent=False, detail=f"there is no tool {effect.tool} here".encode())
        check_sendable(arguments)
        declared = self._find_declared_tool(spec, remotes)
        values = read_arguments(declared, arguments)
        self._check_rate((run, spec.name), spec)
        return declared, values

    def _context(
        self,
        loop: EffectLoop,
        effect: CallTool,
        arguments: bytes,
        declared: AnyTool,
        spec: ToolSpec,
        tenant: UUID | None,
        run: UUID | None,
        files: Files | None,
        *,
        mutating: bool,
    ) -> ToolContext:
        """Build the call's context. The origin comes from configuration, never from the arguments.

        Raises: CallFailed where the origin is missing.
        """
        address = (self._env(declared.service) if declared.service else "") or ""
        origin = origin_of(address)
        if declared.service and origin is None:
            raise CallFailed("unreachable", sent=False, detail=f"{declared.service} is no address".encode())
        return ToolContext(
            key=effect.key, arguments=arguments, env=self._env, origin=origin or "", loop=loop,
            seconds=effect.timeout_ms / 1000, mutating=mutating, spec=spec, tenant=tenant, run=run,
            files=CopiedFiles(run=run) if spec.isolated and run is not None else files,
        )  # fmt: skip

    def _local(
        self, effect: CallTool, declared: AnyTool, values: BaseModel, keeper: ContentSink, spec: ToolSpec
    ) -> EffectResult:
        began = read_monotonic_clock()
        try:
            result = declared.function(**keywords_of(values))
            if (read_monotonic_clock() - began) * 1000 > effect.timeout_ms:
                raise CallFailed("timeout", sent=True)
            return self._build_answer(effect, spec, encode_tool_result(result), keeper)
        except CallFailed as failure:
            return build_failure(effect, keeper, failure)
        except Exception as error:  # noqa: BLE001 - a tool's fault is an outcome
            return build_failure(effect, keeper, _build_crash_failure(declared, error, sent=True))

    async def _await_tool(
        self,
        effect: CallTool,
        declared: AnyTool,
        values: BaseModel,
        context: ToolContext,
        keeper: ContentSink,
        spec: ToolSpec,
    ) -> EffectResult:
        try:
            async with asyncio.timeout(context.seconds):
                result = await _invoke_tool(declared, context, values)
            return self._build_answer(
                effect, spec, encode_tool_result(result, apart=is_isolated_call(context)), keeper
            )
        except TimeoutError:
            sent = context.watch.sent
            return build_failure(
                effect, keeper, CallFailed("timeout" if sent else "unreachable", sent=sent, transient=True)
            )
        except CallFailed as failure:
            return build_failure(effect, keeper, failure)
        except Exception as error:  # noqa: BLE001 - a tool's fault is an outcome
            return build_failure(
                effect, keeper, _build_crash_failure(declared, error, sent=context.watch.sent)
            )

    async def _report_result(
        self, call: Awaitable[EffectResult], spec: ToolSpec, admitted: AdmittedCall, effect: CallTool
    ) -> EffectResult:
        """Await the call and report its result to its circuit.

        A cancelled call reports nothing; if it was the probe, its lease expires.
        """
        performed = await call
        await admitted.tell_aside(
            healthy=assess_health(performed, effect, spec), reason=read_error(performed)
        )
        return performed

    # -- outcomes
    # ------------------------------------------------------------------------------------------------

    def _build_answer(
        self, effect: CallTool, spec: ToolSpec, answer: ServiceResponse[Any], keeper: ContentSink
    ) -> EffectResult:
        """Build the outcome of an answer, with the observation as it came.

        An answer that is not JSON is kept, too, as malformed. The same holds for an unreadable answer to a
        change, which does not say what was done.
        """
        fault = fault_of(spec, answer.body, cut=answer.truncated)
        if fault == NO_JSON or (fault and effect.mutating):
            failed = CallFailed("malformed", sent=True, detail=answer.body, unread=answer)
            return build_failure(effect, keeper, failed, fault)
        TALLY.add("tool", effect.tool, "answered")
        # The digest of a truncated result's whole is stored with its request id (G7).
        mark = f" sha256={answer.whole}" if answer.truncated else ""
        fields = {
            "effect": effect.id, "observation": keeper.keep(answer.body), "size": answer.size,
            "request_id": f"{answer.request_id}{mark}".strip(), "truncated": answer.truncated,
            "status": answer.status, "whole": answer.whole if answer.truncated else "",
        }  # fmt: skip
        return EffectResult(kind=ToolAnswered, fields=fields, bodies=keeper.bodies)


def _admit_call(circuits: Circuits, effect: CallTool) -> AdmittedCall:
    """Return the admission of a call.

    Raises: CallFailed where the tool's circuit lets no call through.
    """
    ticket = circuits.admit("tool", effect.tool, timeout_ms=effect.timeout_ms)
    if isinstance(ticket, BlockedCircuit):
        raise CallFailed(
            "circuit_open", sent=False, transient=True, detail=effect.tool.encode(),
            retry_after_ms=ticket.wait_ms,
        )  # fmt: skip
    return AdmittedCall(circuits=circuits, ticket=ticket)


async def _invoke_tool(declared: AnyTool, context: ToolContext, values: BaseModel) -> Any:
    if declared.takes_context:
        return await declared.function(context, **keywords_of(values))
    return await declared.function(**keywords_of(values))


async def _looked_up(
    look_up: LookUp, context: ToolContext, values: BaseModel, keeper: ContentSink
) -> LookUpResult:
    for pause in LOOK_UP_PAUSES:
        try:
            async with asyncio.timeout(context.seconds):
                answer = await look_up(context, values)
            return _as_found(answer, keeper)
        except Exception as error:  # noqa: BLE001 - not knowing is an answer, and a person gets it
            log.warning("tool.look_up_failed", origin=context.origin, error=type(error).__name__)
            await asyncio.sleep(pause)
    return LookUpResult(answered=False, why="unreachable")


def _as_found(answer: ServiceResponse[Any] | None, keeper: ContentSink) -> LookUpResult:
    if answer is None:
        return LookUpResult(answered=True)
    digest = keeper.keep(answer.body)
    return LookUpResult(
        answered=True, observation=digest, size=answer.size or len(answer.body), bodies=keeper.bodies
    )


def _build_crash_failure(declared: AnyTool, error: Exception, *, sent: bool) -> CallFailed:
    """Build the failure for an exception in a tool: the trace gets its message, the log only its type."""
    log.error("tool.crashed", tool=declared.spec.name, error=type(error).__name__)
    words = f"{type(error).__name__}: {error}"[:1_000]
    return CallFailed("crashed", sent=sent, detail=words.encode("utf-8", "backslashreplace"))
