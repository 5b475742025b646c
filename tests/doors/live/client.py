"""A client of the live view that keeps its cursor as the rules say."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.db import connection
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.doors.api.program import Program

# How long a busy machine may need, which loads a library for the first model call of a process.
PATIENCE = 60.0


async def in_thread(function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """Database work beside the loop, in a thread that gives its connection back."""

    def work() -> Any:
        try:
            return function(*arguments, **more)
        finally:
            connection.close()

    return await asyncio.to_thread(work)


def bearer(key: str | Program) -> dict[str, str]:
    """The header of a key."""
    return {"Authorization": f"Bearer {key.clear if isinstance(key, Program) else key}"}


class Follower:
    """Collects the items of frames, in order; what does not go on from its cursor is dropped."""

    def __init__(self, socket: ClientConnection, name: str = "events", after: Any = 0) -> None:
        self.socket, self.name, self.after = socket, name, after
        self.frames: list[dict[str, Any]] = []
        self.items: list[Any] = []

    async def hello(self, **more: Any) -> None:
        """Say where we stand."""
        await self.socket.send(json.dumps({"after": self.after, **more}))

    async def take(self) -> dict[str, Any]:
        """The next frame."""
        frame: dict[str, Any] = json.loads(await self.socket.recv())
        self.frames.append(frame)
        if frame["after"] == self.after:
            self.after = frame["seq"]
            self.items += frame.get(self.name, [])
        else:
            await self.hello()
        return frame

    async def until(self, enough: Callable[["Follower"], bool], patience: float = PATIENCE) -> None:
        """Take frames until there is enough."""
        async with asyncio.timeout(patience):
            while not enough(self):
                await self.take()


def ended(follower: Follower) -> bool:
    """Whether the newest frame says that nothing comes any more."""
    return bool(follower.frames) and "end" in follower.frames[-1]


@asynccontextmanager
async def following(
    base: str,
    path: str,
    key: str | Program | None = None,
    *,
    name: str = "events",
    after: Any = 0,
    headers: dict[str, str] | None = None,
    **hello: Any,
) -> AsyncIterator[Follower]:
    """A socket that has said hello."""
    given = (bearer(key) if key else {}) | (headers or {})
    async with connect(
        f"ws://{base}{path}", additional_headers=given, open_timeout=PATIENCE, close_timeout=2
    ) as socket:
        follower = Follower(socket, name, after)
        await follower.hello(**hello)
        yield follower


async def close_code(base: str, path: str, key: str | Program | None = None, **more: Any) -> int:
    """With which code the house closes."""
    try:
        async with following(base, path, key, **more) as follower:
            return await closing(follower)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else 1006


async def closing(follower: Follower, patience: float = PATIENCE) -> int:
    """Take frames until the close; its code."""
    try:
        async with asyncio.timeout(patience):
            while True:
                await follower.take()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else 1006
