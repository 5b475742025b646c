"""One asyncio loop thread per process, on which every waiting effect is performed (docs/ring.md).

Celery's thread pool enforces no time limits, and a provider's connection pool belongs to the loop that opened
it: so there is one loop, its deadlines are asyncio's, and its clients live and die with it.
"""

import asyncio
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import structlog

T = TypeVar("T")
log = structlog.get_logger(__name__)
STOP_SECONDS = 5.0
# Clients differ by address and key, which tenants may change at will.
MOST_CLIENTS = 256
# Seconds; no call may take longer than ten minutes.
LONGEST_CALL = 620.0
_CLOSING: set[asyncio.Task[None]] = set()
Close = Callable[[], Awaitable[None]]


class EffectLoop:
    """The loop and its thread, started at first use. Thread-safe; after a fork the child starts its own."""

    def __init__(self) -> None:
        self._forget()
        itself = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forget_in_child(itself))

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._clients: OrderedDict[Hashable, tuple[Any, Close]] = OrderedDict()
        self._working: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Start the thread; does nothing when it runs."""
        self._get_running_loop()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Perform `work` on the loop. Cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(self._run_tracked(work), self._get_running_loop())

    def run(self, work: Coroutine[Any, Any, T], timeout_ms: int) -> T:
        """Perform and wait. Raises TimeoutError after `timeout_ms`; the work is then cancelled."""
        return self.submit(_run_with_timeout(work, timeout_ms)).result()

    def client(self, key: Hashable, make: Callable[[], tuple[T, Close]]) -> T:
        """The client kept under `key`, made at first use with what closes it. Call it on the loop only. The
        one that was asked for longest ago makes room, and is closed once no call can have it in hand."""
        if key not in self._clients:
            self._clients[key] = make()
            if len(self._clients) > MOST_CLIENTS:
                _, (_, close) = self._clients.popitem(last=False)
                asyncio.get_running_loop().call_later(LONGEST_CALL, _close_soon, close)
        self._clients.move_to_end(key)
        kept: T = self._clients[key][0]
        return kept

    def stop(self) -> None:
        """Cancel what is under way, close every client, end the thread. It may be started again."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._wind_up(), loop).result(STOP_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_SECONDS)

    async def _run_tracked(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._working.add(task)
        try:
            return await work
        finally:
            self._working.discard(task)

    async def _wind_up(self) -> None:
        # First who was asked for: they end what they have started themselves. Then what is left.
        await _cancel_tasks(self._working)
        await _cancel_tasks(asyncio.all_tasks())
        kept, self._clients = self._clients, OrderedDict()
        for _, close in kept.values():
            await _close_client(close)

    def _get_running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_event_loop, args=(self._loop,), name="effects", daemon=True
                )
                self._thread.start()
            return self._loop


async def _cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    others = [task for task in tasks if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _close_soon(close: Close) -> None:
    task = asyncio.ensure_future(_close_client(close))
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)


async def _close_client(close: Close) -> None:
    try:
        await close()
    except Exception as error:  # noqa: BLE001 - a client that will not close must not keep the next one open
        log.warning("effects_loop.client_not_closed", error=type(error).__name__)


async def _run_with_timeout(work: Coroutine[Any, Any, T], timeout_ms: int) -> T:
    async with asyncio.timeout(timeout_ms / 1000):
        return await work


def _run_event_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _forget_in_child(itself: "weakref.ref[EffectLoop]") -> None:
    """The thread did not survive the fork and its connections are the parent's: leave them alone."""
    found = itself()
    if found is not None:
        found._forget()  # noqa: SLF001 - a function of this class, called by the interpreter
