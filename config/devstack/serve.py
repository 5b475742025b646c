"""`python -m config.devstack.serve`: the web process, logging through the house's one log."""

from __future__ import annotations

import gc
import os
import resource
import socket
from typing import TYPE_CHECKING

import django
import uvicorn
from django.core.checks.urls import check_url_config

from config.env import Environment
from config.http_limits.web_protocol import ConnectionBounds, bounded_protocols
from config.observability.checks import refuse_power
from tenancy.db.process_lock import hold_process_lock

if TYPE_CHECKING:
    from traces.live.hub import Hub


class Server(uvicorn.Server):
    """Ends what is followed before it waits for what is under way: a stream would never end by itself."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close sockets with 1012, which sends clients to the next process at once, and end streams."""
        self._hub.close()
        await super().shutdown(sockets)


def build_uvicorn_config(
    application: object, host: str, port: int, bounds: ConnectionBounds | None = None
) -> uvicorn.Config:
    """uvicorn as this house runs it. Frames are small and many: compressing each costs more than it saves.

    A socket whose client is gone without a word is found by pings within forty seconds.
    """
    http, socket_protocol = bounded_protocols(bounds or ConnectionBounds())
    return uvicorn.Config(
        application,  # type: ignore[arg-type]  # Channels' routers are typed by another package
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        http=http,
        ws=socket_protocol,
        lifespan="off",
        timeout_graceful_shutdown=5,
        ws_max_size=64 * 1024,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        ws_per_message_deflate=False,
        server_header=False,
        # Who asks is read from the forwarded header by the number of trusted proxies (INTERLOCK_PROXIES)
        # alone: uvicorn would believe whatever a program on this machine writes there.
        proxy_headers=False,
    )


def preload_and_freeze() -> None:
    """Load what the first page would load, and leave all of it to no collection: what lives as long as the
    process would be walked again and again, a tenth of a second of every few pages of a long run (R-UI-12).
    """
    check_url_config(None)
    gc.collect()
    gc.freeze()


def open_files() -> None:
    """Let this process open as many files as it may: followers are connections beside the bounded ones."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Refuse a powerful database role, then serve until told to stop."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    refuse_power()
    hold_process_lock()
    from config.asgi import HUB, application  # noqa: PLC0415 - Django's apps come first
    from config.observability.metrics import serve_web  # noqa: PLC0415 - as before

    serve_web()
    environment = Environment()
    open_files()
    preload_and_freeze()
    Server(build_uvicorn_config(application, environment.host, environment.port), HUB).run()


if __name__ == "__main__":
    main()
