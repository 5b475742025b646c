"""Routing of WebSockets and streams: one hub per process, and the feeds of all packages (R-API-5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.urls import re_path

from config.http_limits.body_room import identified_by
from config.http_limits.request_limits import LimitBodies
from config.live.feeds import INBOX, OVERVIEW, RUN, RUNS
from tenancy.web.connection_auth import Headers, Presence, authenticate_connection
from traces.consumers.sse import Streams
from traces.consumers.websocket import Socket
from traces.live.hub import Hub
from traces.live.subscribers import GONE, Limits

Application = Callable[[Any, Any, Any], Awaitable[None]]


def build_hub(limits: Limits | None = None) -> Hub:
    """Build a hub for this version of Interlock."""
    return Hub(limits, build=settings.INTERLOCK_VERSION)


def build_live_application(http: Application, shared: Hub) -> LimitBodies:
    """Build the whole application: HTTP with streams, and WebSockets, on one hub and with limited bodies."""
    sockets = build_socket_router(
        {
            "^ws/runs$": Socket(shared, RUNS),
            "^ws/inbox$": Socket(shared, INBOX),
            "^ws/overview$": Socket(shared, OVERVIEW),
            "^ws/runs/(?P<subject>[0-9a-f-]{36})$": Socket(shared, RUN),
            "": _reject_unknown_socket,
        }
    )
    routes = ProtocolTypeRouter({"http": Streams(http, shared, RUN), "websocket": sockets})

    async def identify_caller(headers: Headers, peer: str) -> Presence:
        return await shared.reading(authenticate_connection, headers, peer)

    return LimitBodies(routes, identify=identified_by(identify_caller))


def build_socket_router(sockets: dict[str, Any]) -> URLRouter:
    """Route sockets by address. Django's patterns are typed for views, Channels' router for its own."""
    routes: Any = [re_path(address, socket) for address, socket in sockets.items()]
    return URLRouter(routes)


async def _reject_unknown_socket(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """Close a socket of an unknown address like that of a run that does not exist."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": GONE})
