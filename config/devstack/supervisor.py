"""`manage.py up`: starts every part in order, keeps them running, and ends them in reverse.

One process, one log. A part is ready when its probe says so, and only then the next step is taken; steps that
wait for nothing of each other are taken side by side. A part that ends by itself is started again after a
growing pause, and that is said. Nothing here knows Django.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TextIO

import psycopg

from config.devstack.child_process import Command
from config.devstack.process_specs import Part

_COLOURS = ("36", "35", "33", "32", "34", "96", "95", "93", "92", "94")
_LINE_LIMIT = 2**20
Step = Part | Callable[[], Command | None]
FIRST_PAUSE, LONGEST_PAUSE, STEADY_AFTER = 0.5, 30.0, 60.0
# A part that was ready and was killed is back soon, however often that happens; one that cannot start is
# tried less and less often.
LONGEST_PAUSE_AFTER_READY = 2.0
START_TRIES = 4


class StartFailedError(Exception):
    """A part did not become ready."""


class StartEndedError(StartFailedError):
    """A part ended before it was ready."""


# What ends a start, or is tried again, with its own sentence; all else is a mistake of ours.
FAULTS = (StartFailedError, OSError, RuntimeError, psycopg.Error)


class Journal:
    """The one log: each line with the name of the part that wrote it, coloured on a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._coloured = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._colours: dict[str, str] = {}

    def write(self, name: str, line: str) -> None:
        """One line."""
        label = f"{name:<9}|"
        if self._coloured:
            colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
            label = f"\x1b[{colour}m{label}\x1b[0m"
        # A terminal or pipe that went away must not end the house before its children are ended.
        with suppress(OSError, ValueError):
            print(f"{label} {line}", file=self._stream, flush=True)

    def say(self, line: str) -> None:
        """A line of the supervisor's own."""
        self.write("interlock", line)

    def show(self, lines: Sequence[str]) -> None:
        """Print lines for people to read, without the name of a part."""
        with suppress(OSError, ValueError):
            print("\n".join(lines), file=self._stream, flush=True)


class Child:
    """One running part."""

    def __init__(self, part: Part, journal: Journal) -> None:
        self.part = part
        self._journal = journal
        self._command: Command | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._pump: asyncio.Task[None] | None = None
        self.stopping = False

    @property
    def pid(self) -> int | None:
        """The process's id while there is one."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process and wait until it is ready. Raises StartFailedError."""
        await asyncio.to_thread(self.part.before)
        self._command = await asyncio.to_thread(self.part.command)
        self._process = await launch_process(self._command)
        self._pump = asyncio.create_task(copy_process_output(self._process, self.part.name, self._journal))
        await self._become_ready(self._process)
        await asyncio.to_thread(self.part.after)

    async def _become_ready(self, process: asyncio.subprocess.Process) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.part.patience
        while not await asyncio.to_thread(self.part.ready):
            if process.returncode is not None:
                raise StartEndedError(
                    f"{self.part.name} ended with {format_exit_status(process.returncode)} while starting"
                )
            if loop.time() > deadline:
                raise StartFailedError(f"{self.part.name} was not ready within {self.part.patience:.0f} s")
            await asyncio.sleep(0.05)

    async def wait_for_end(self) -> int:
        """Wait for the process's end; its status."""
        if self._process is None:
            return 0
        status = await self._process.wait()
        if self._pump:
            await self._pump
        return status

    async def stop(self) -> None:
        """Ask the process to end, wait, and kill its whole session if it does not."""
        self.stopping = True
        process, command = self._process, self._command
        if process is None or command is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(command.stop)
        try:
            await asyncio.wait_for(process.wait(), command.patience)
        except TimeoutError:
            self._journal.say(f"{self.part.name} did not end in {command.patience:.0f} s and is killed")
            self.kill()
            await process.wait()

    def kill(self) -> None:
        """End the process and whatever it started, at once."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def format_exit_status(status: int) -> str:
    """A status in words: `status 1`, `signal SIGKILL`."""
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


async def launch_process(command: Command) -> asyncio.subprocess.Process:
    """Start a command with its output in a pipe."""
    return await asyncio.create_subprocess_exec(
        *command.argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=_LINE_LIMIT,
        **command.popen(),
    )


async def copy_process_output(process: asyncio.subprocess.Process, name: str, journal: Journal) -> None:
    """Copy a process's output into the journal until it closes."""
    assert process.stdout is not None  # noqa: S101 - asked for in `launch_process`
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:
            line = b"(a line longer than 1 MiB was left out)\n"
        if not line:
            return
        journal.write(name, line.decode(errors="replace").rstrip())


class Supervisor:
    """Runs steps and parts in order, then watches until told to stop."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._children: list[Child] = []
        self._watchers: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._signals = 0

    def on_signal(self) -> None:
        """The first asks everything to end in order, the third kills."""
        self._signals += 1
        if self._signals == 1:
            self._stop.set()
        elif self._signals >= 3:
            for child in self._children:
                child.kill()

    async def run(self, steps: Sequence[Step | tuple[Step, ...]], ready: Callable[[], None]) -> int:
        """Take the steps, those of a tuple side by side; call `ready`; watch. The status of the whole."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.on_signal)
        status = 0
        try:
            if await self._start(steps):
                ready()
                await self._stop.wait()
        except FAULTS as failure:
            self.journal.say(f"{failure}")
            status = 1
        finally:
            await self._end()
        return status

    async def _start(self, steps: Sequence[Step | tuple[Step, ...]]) -> bool:
        stopping = asyncio.create_task(self._stop.wait())
        try:
            for step in steps:
                taking = asyncio.create_task(self._together(step if isinstance(step, tuple) else (step,)))
                await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    taking.cancel()
                    with suppress(asyncio.CancelledError, StartFailedError):
                        await taking
                    return False
                await taking
        finally:
            stopping.cancel()
        return True

    async def _together(self, steps: tuple[Step, ...]) -> None:
        """Take steps side by side. The first failure ends the others' waiting and is raised alone."""
        try:
            async with asyncio.TaskGroup() as group:
                for step in steps:
                    group.create_task(self._take(step))
        except* FAULTS as failures:
            failure: BaseException = failures
            while isinstance(failure, BaseExceptionGroup):
                failure = failure.exceptions[0]
            raise StartFailedError(f"{failure}") from failure

    def _take(self, step: Step) -> Coroutine[None, None, None]:
        return self._part(step) if isinstance(step, Part) else self._once(step)

    async def _part(self, part: Part) -> None:
        child = Child(part, self.journal)
        self._children.append(child)
        await self._start_first(child)
        self.journal.say(f"{part.name} is ready")
        self._watchers.append(asyncio.create_task(self._watch(child)))

    async def _start_first(self, child: Child) -> None:
        """Start a part for the first time, and again after a pause where it ends at once.

        What was killed a moment ago may still hold what the part needs. Raises StartFailedError.
        """
        pause = FIRST_PAUSE
        for _ in range(START_TRIES - 1):
            try:
                await child.start()
            except (StartEndedError, TimeoutError) as failure:
                self.journal.say(f"{failure}; it is started again in {pause:g} s")
                await asyncio.sleep(pause)
                pause *= 2
            else:
                return
        await child.start()

    async def _once(self, prepare: Callable[[], Command | None]) -> None:
        command = await asyncio.to_thread(prepare)
        if command is None:
            return
        process = await launch_process(command)
        name = command.argv[2] if command.argv[1] == "manage.py" else command.argv[1]
        try:
            await copy_process_output(process, name, self.journal)
            if status := await process.wait():
                raise StartFailedError(f"{name} ended with {format_exit_status(status)}")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _watch(self, child: Child) -> None:
        loop = asyncio.get_running_loop()
        pause, since, was_ready = FIRST_PAUSE, loop.time(), True
        while True:
            status = await child.wait_for_end()
            if child.stopping or self._stop.is_set():
                return
            pause = FIRST_PAUSE if loop.time() - since > STEADY_AFTER else pause
            pause = min(pause, LONGEST_PAUSE_AFTER_READY if was_ready else LONGEST_PAUSE)
            self.journal.say(
                f"{child.part.name} ended with {format_exit_status(status)}; it is started again in "
                f"{pause:g} s"
            )
            await asyncio.sleep(pause)
            pause, since, was_ready = pause * 2, loop.time(), False
            try:
                await child.start()
            except FAULTS as failure:
                self.journal.say(f"{failure}")
                child.kill()
            else:
                was_ready = True
                self.journal.say(f"{child.part.name} is ready again")

    async def _end(self) -> None:
        for child in self._children:
            child.stopping = True
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        started = [child for child in self._children if child.pid is not None]
        if started:
            self.journal.say("ending everything, last started first")
        for child in reversed(started):
            await child.stop()
            self.journal.say(f"{child.part.name} has ended")
