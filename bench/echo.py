"""`python -m bench.echo PORT`: the floor of a live view. What comes in on /source goes out on every other
socket, by the same server with the same options, without a database, a broker or a permission."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from uvicorn import Server

from config.devstack.serve import build_uvicorn_config

VIEWERS: set["asyncio.Queue[str]"] = set()
Message = MutableMapping[str, Any]


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """One socket."""
    if scope["type"] != "websocket":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/source":
        while (message := await receive())["type"] == "websocket.receive":
            for viewer in VIEWERS:
                viewer.put_nowait(message["text"])
        return
    await receive()
    queue: asyncio.Queue[str] = asyncio.Queue()
    VIEWERS.add(queue)
    listening = asyncio.ensure_future(receive())
    try:
        while not listening.done():
            coming = asyncio.ensure_future(queue.get())
            await asyncio.wait({listening, coming}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                await send({"type": "websocket.send", "text": coming.result()})
            else:
                coming.cancel()
    finally:
        VIEWERS.discard(queue)
        listening.cancel()


if __name__ == "__main__":
    Server(build_uvicorn_config(application, "127.0.0.1", int(sys.argv[1]))).run()
