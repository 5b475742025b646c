"""A real uvicorn in a thread of this process, on the test's database and broker."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.asgi import get_asgi_application

from config.devstack.serve import Server, build_uvicorn_config
from config.http_limits.web_protocol import ConnectionBounds
from config.live.routing import build_hub, build_live_application
from traces.live.hub import Hub
from traces.live.subscribers import Limits

QUICK = Limits(heartbeat=0.5, recheck=0.3, fallback=0.5, hello=2.0)


class Serving:
    """A server that listens. `base` is host and port."""

    def __init__(
        self,
        application: Callable[[Hub], Any],
        limits: Limits = QUICK,
        port: int = 0,
        bounds: ConnectionBounds | None = None,
    ) -> None:
        self._socket = socket.create_server(("127.0.0.1", port), reuse_port=False)
        self.port = int(self._socket.getsockname()[1])
        self.base = f"127.0.0.1:{self.port}"
        self.hub = build_hub(limits)
        set_up = build_uvicorn_config(application(self.hub), "127.0.0.1", self.port, bounds)
        self.server = Server(set_up, self.hub)
        self._thread = threading.Thread(target=self._run, name="uvicorn", daemon=True)
        self._thread.start()
        until = time.monotonic() + 10
        while not self.server.started:
            assert time.monotonic() < until
            time.sleep(0.01)

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self.server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        """Stop as SIGTERM would."""
        self.server.should_exit = True
        self._thread.join(15)
        assert not self._thread.is_alive()


@contextmanager
def serving(
    limits: Limits = QUICK, port: int = 0, bounds: ConnectionBounds | None = None
) -> Iterator[Serving]:
    """The house's own application."""
    served = Serving(
        lambda shared: build_live_application(get_asgi_application(), shared), limits, port, bounds
    )
    try:
        yield served
    finally:
        served.stop()
