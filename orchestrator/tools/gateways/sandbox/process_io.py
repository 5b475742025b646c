"""Following a process that nobody vouches for: fed, heard within a bound, and ended with all that
came from it."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field

from orchestrator.outbound.gateways.subprocess_groups import (
    kill_group_and_wait,
    kill_process_group,
    run_to_completion,
)
from orchestrator.tools.gateways.sandbox import resource_monitor
from orchestrator.tools.gateways.sandbox.limits import Limits, Why

LOOK_EVERY = 0.05
CHUNK = 64 * 1024


@dataclass(slots=True)
class StreamOutput:
    """The beginning of what a stream said, and how much it was; `most` bytes are kept."""

    most: int
    head: bytearray = field(default_factory=bytearray)
    size: int = 0

    def take(self, chunk: bytes) -> bool:
        """Keep what fits; whether that was all of it."""
        self.size += len(chunk)
        self.head += chunk[: max(0, self.most - len(self.head))]
        return self.size <= self.most


@dataclass(slots=True)
class FollowedProcess:
    """A process under its limits, the first of a group of its own. `why`: how it came to its end."""

    process: Process
    limits: Limits
    why: Why = "ended"

    async def until_the_end(self, *others: Awaitable[None]) -> tuple[StreamOutput, StreamOutput]:
        """Hear both streams, and do what else is given, until it ends by itself or at a limit."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        heard = StreamOutput(self.limits.output_bytes), StreamOutput(self.limits.output_bytes)
        watch = asyncio.create_task(self._watch())
        try:
            async with asyncio.timeout(self.limits.seconds):
                await asyncio.gather(
                    self.hear(self.process.stdout, heard[0]),
                    self.hear(self.process.stderr, heard[1]),
                    *others,
                )
                await self.process.wait()
        except TimeoutError:
            self.why = "timeout"
        finally:
            watch.cancel()
            # A sandbox that is ended while it is being made has not yet tied its inside to itself.
            await run_to_completion(kill_group_and_wait(self.process))
        return heard

    async def feed(self, content: bytes) -> None:
        """Write all of it and close."""
        stream = self.process.stdin
        assert stream is not None
        with suppress(ConnectionError):
            stream.write(content)
            await stream.drain()
        stream.close()

    async def hear(self, stream: asyncio.StreamReader, heard: StreamOutput) -> None:
        """Read to the end, within the bound: past it everything is ended."""
        while chunk := await stream.read(CHUNK):
            if not heard.take(chunk):
                self._stop("output")

    async def _watch(self) -> None:
        """The limits that the kernel keeps for each process alone, kept for all of them."""
        while self.process.returncode is None:
            await asyncio.sleep(LOOK_EVERY)
            number, held = resource_monitor.measure_process_tree(self.process.pid)
            if number > self.limits.processes:
                self._stop("processes")
            elif held > self.limits.memory_bytes:
                self._stop("memory")

    def _stop(self, why: Why) -> None:
        if self.why == "ended":
            self.why = why
        kill_process_group(self.process)
