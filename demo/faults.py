"""Faults that the company can be set to, each for the next n requests of one service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Service = Literal[
    "orders",
    "policy",
    "payments",
    "mail",
    "ledger",
    "services",
    "documents",
    "stock",
    "shipping",
    "tickets",
]
Mode = Literal[
    "none", "slow", "fail", "refuse", "commit_then_fail", "commit_then_refuse", "hang", "commit_then_hang"
]
_SECONDS = {"slow": 2.0, "hang": 3600.0, "commit_then_hang": 3600.0}
_WRITING = ("payments", "mail", "ledger", "services", "stock", "shipping", "tickets")


class Fault(BaseModel):
    """A fault of a service for its next `times` requests of a kind; None: until it is changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: Service
    mode: Mode
    seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] | None = None
    times: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    on: Literal["all", "reads", "writes"] | None = None

    @property
    def hold_seconds(self) -> float:
        """How long a request is held, in seconds."""
        return self.seconds if self.seconds is not None else _SECONDS.get(self.mode, 0.0)

    def concerns(self, *, writes: bool) -> bool:
        """Return whether the fault applies to a request.

        By default, `commit_then_…` applies to writes only, if the service has any.
        """
        by_default = "writes" if self.mode.startswith("commit") and self.service in _WRITING else "all"
        kind = self.on or by_default
        return kind == "all" or (kind == "writes") == writes


class Faults:
    """The faults in force. They are kept in memory only: a restarted company has none."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self._applied: dict[str, int] = {}
        self._held: dict[str, int] = {}

    def tell(self, fault: Fault) -> None:
        """Set a service's fault and release the requests held by the previous fault."""
        self._release(fault.service)
        self._applied[fault.service] = 0
        self._faults[fault.service] = fault
        if fault.mode == "none":
            del self._faults[fault.service]
            if event := self._ended.pop(fault.service, None):
                event.set()

    def clear(self) -> None:
        """End every fault and release every held request.

        A slow request in progress keeps its time: faults set later do not affect it.
        """
        self._faults.clear()
        self._applied.clear()
        self._ended.clear()
        for service in list(self._changed):
            self._release(service)

    def _release(self, service: str) -> None:
        if event := self._changed.pop(service, None):
            event.set()

    def take(self, service: str | None, *, writes: bool) -> Fault | None:
        """Return the fault that applies to this request, counted down; None if the request goes through."""
        fault = self._faults.get(service or "")
        if fault is None or not fault.concerns(writes=writes):
            return None
        self._applied[fault.service] = self._applied.get(fault.service, 0) + 1
        if fault.times is not None:
            left = fault.times - 1
            self._faults[fault.service] = fault.model_copy(update={"times": left})
            if not left:
                del self._faults[fault.service]
        return fault

    async def slowly(self, fault: Fault) -> None:
        """Wait for the time of the fault, or until the service's faults are ended.

        The wait depends neither on the client nor on later faults.
        """
        ended = self._ended.setdefault(fault.service, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(fault.hold_seconds):
                await ended.wait()

    async def hold(self, fault: Fault, gone: Callable[[], Awaitable[None]]) -> bool:
        """Hold a request until its time is over, the fault changes (True) or the client leaves (False)."""
        changed = self._changed.setdefault(fault.service, asyncio.Event())
        left = asyncio.ensure_future(gone())
        released = asyncio.ensure_future(changed.wait())
        self._held[fault.service] = self._held.get(fault.service, 0) + 1
        try:
            await asyncio.wait(
                {left, released}, timeout=fault.hold_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return not left.done()
        finally:
            self._held[fault.service] -= 1
            left.cancel()
            released.cancel()

    def list_faults(self) -> dict[str, object]:
        """List the faults in force, the requests hit by each service's last fault, and those held now."""
        told = [fault.model_dump() for _, fault in sorted(self._faults.items())]
        return {"faults": told, "applied": self._applied, "held": self._held}
