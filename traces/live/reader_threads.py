"""Threads in which a process reads for its viewers.

Each thread keeps its database connection while there is something to read and returns the connection to the
pool when idle. Opening a new connection for every read would cost half as much as the read itself.
"""

import asyncio
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import thread_time
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection

T = TypeVar("T")
NUMBER = 4
IDLE_SECONDS = 3.0


class Readers:
    """A small pool of threads, started at first use. Call it with a blocking function and its arguments."""

    def __init__(self, number: int = NUMBER) -> None:
        self._number = number
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._starting = Lock()

    async def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run the function in a reader thread; return its result or raise its exception."""
        self._start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(answer: Callable[[], None]) -> None:
            if not future.done():
                answer()

        def job() -> None:
            try:
                found = _read_with_reconnect(function, *arguments)
            except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
                answer: Callable[[], None] = _make_exception_setter(future, error)
            else:
                answer = _make_result_setter(future, found)
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, answer)

        self._jobs.put(job)
        return await future

    async def run_timed(self, function: Callable[..., T], *arguments: Any) -> tuple[T, float]:
        """Run the function in a reader thread; return its result and the CPU seconds it used.

        Only the CPU time of the thread counts; waiting for the database does not.
        """

        def measure_call() -> tuple[T, float]:
            started = thread_time()
            return function(*arguments), thread_time() - started

        return await self(measure_call)

    def stop(self) -> None:
        """End the threads once they have finished the jobs already queued."""
        for _ in self._threads:
            self._jobs.put(None)

    def _start(self) -> None:
        with self._starting:
            while len(self._threads) < self._number:
                thread = Thread(target=self._work, name=f"reader-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                connection.close()
                continue
            if job is None:
                connection.close()
                return
            job()


def _read_with_reconnect(function: Callable[..., T], *arguments: Any) -> T:
    """Call the function; retry once on a new connection if the kept connection was lost."""
    kept = connection.connection is not None
    try:
        return function(*arguments)
    except (OperationalError, InterfaceError):
        connection.close()
        if not kept:
            raise
    except BaseException:
        connection.close()
        raise
    try:
        return function(*arguments)
    except BaseException:
        connection.close()
        raise


def _make_result_setter(future: "asyncio.Future[T]", found: T) -> Callable[[], None]:
    return lambda: future.set_result(found)


def _make_exception_setter(future: "asyncio.Future[T]", error: Exception) -> Callable[[], None]:
    return lambda: future.set_exception(error)
