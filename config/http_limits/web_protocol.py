"""uvicorn's HTTP protocol with limits on heads, bodies, answers and connections (R-SEC-7).

Heads are limited by size and time, bodies and answers by pace. httptools limits neither a head nor its
duration; h11 limits a head only.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from tenancy.web.connection_slots import STATE_KEY, ConnectionSlot, ConnectionSlots

log = structlog.stdlib.get_logger(__name__)
REFUSALS = {
    400: "The request could not be understood.",
    408: "The request took too long to arrive.",
    431: "The request's head is too large.",
    503: "Too many connections; come back in a moment.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBounds:
    """Limits in connections, bytes, lines and seconds."""

    connections: int = 512
    head_bytes: int = 64 * 1024
    head_lines: int = 128
    head_seconds: float = 20.0
    # A body has this time at first, and one more second for each `bytes_a_second` received.
    body_seconds: float = 20.0
    bytes_a_second: int = 500
    # Maximum number of requests that a client may send before the first of them is answered.
    pipelined: int = 16
    # Maximum number of unread WebSocket messages, and of fragments of one message.
    waiting: int = 64
    # Time that a refused client has to read its answer while its further input is discarded.
    parting_seconds: float = 1.0


class WritePace:
    """Ends a connection whose client does not read what was written for it."""

    def __init__(self, bounds: ConnectionBounds, loop: asyncio.AbstractEventLoop) -> None:
        self._bounds, self._loop = bounds, loop
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, transport: asyncio.Transport) -> None:
        """Check the pace until everything is written. Further calls have no effect meanwhile."""
        if self._timer is None and (size := transport.get_write_buffer_size()):
            self._timer = self._loop.call_later(self._bounds.body_seconds, self._look, transport, size)

    def stop(self) -> None:
        """Stop checking at the end of the connection."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, transport: asyncio.Transport, before: int) -> None:
        self._timer = None
        wanted = self._bounds.bytes_a_second * self._bounds.body_seconds
        size = transport.get_write_buffer_size()
        if size and before - size < wanted:
            transport.abort()
        else:
            self.watch(transport)


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket that releases its connection's slot when it is closed."""

    bounds: ClassVar[ConnectionBounds]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start watching the write pace."""
        super().connection_made(transport)
        self._pace = WritePace(self.bounds, self.loop)

    def pause_writing(self) -> None:
        """Watch the pace of a client that reads more slowly than the server writes."""
        super().pause_writing()
        self._pace.watch(self.transport)

    def handle_ping(self) -> None:
        """Answer a ping, unless the client leaves earlier answers unread.

        The number of pings is not limited.
        """
        answer = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(answer)

    def handle_cont(self, event: Frame) -> None:
        """Accept a fragment of a message. Empty fragments do not count towards the size of the message."""
        if len(self.frames) >= self.bounds.waiting:
            self.transport.abort()
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Queue a message. One read from the network may contain thousands of small messages."""
        if self.queue.qsize() >= self.bounds.waiting:
            self.transport.abort()
        else:
            super().send_receive_event_to_app()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the slot."""
        self._pace.stop()
        super().connection_lost(exc)
        if (slot := self.app_state.get(STATE_KEY)) is not None:
            slot.release()


class BoundedHttp(HttpToolsProtocol):
    """One HTTP connection within limits. `bounds` and `slots` are those of its server."""

    bounds: ClassVar[ConnectionBounds]
    slots: ClassVar[ConnectionSlots]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._slot: ConnectionSlot | None = None
        self._pace = WritePace(self.bounds, self.loop)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head, self._too_large, self._refused, self._upgraded = True, False, False, False
        # Bytes of the head received and parsed; its lines; bytes since the last part of the body.
        self._came = self._read = self._lines = self._framing = 0
        self._body_began, self._body_bytes = 0.0, 0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a slot, or refuse the connection."""
        super().connection_made(transport)
        self._slot = self.slots.take(transport.abort)
        if self._slot is None:
            if self.slots.should_tell(self.loop.time()):
                log.warning("connections.full", limit=self.slots.limit)
            self._refuse(503)
            return
        self.app_state = {**self.app_state, STATE_KEY: self._slot}
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the slot, unless a WebSocket has it now."""
        self._pace.stop()
        self._stop_timer()
        if self._slot is not None:
            self._slot.release()
        super().connection_lost(exc)

    # What comes in

    def data_received(self, data: bytes) -> None:
        """Feed the parser as much as is allowed."""
        if self._refused:
            return
        if self._in_head:
            data = self._feed_head(data)
        if data and self._goes_on():
            self._framing += len(data)
            super().data_received(data)
            if self._framing > self.bounds.head_bytes:
                # Trailers, or chunk headers of empty chunks.
                self._refuse(431)

    def _goes_on(self) -> bool:
        return not (self._refused or self._upgraded or self.transport.is_closing())

    def _feed_head(self, data: bytes) -> bytes:
        """Feed what still fits into a head, and return the rest, which belongs to no head."""
        if self._timer is None:
            self._await_head()
        room = self.bounds.head_bytes - self._came
        self._came += len(data[:room])
        super().data_received(data[:room])
        rest = data[room:]
        if rest and self._in_head and not self._refused:
            self._refuse(431)
        self._framing = 0
        return rest

    def on_message_begin(self) -> None:
        """Start the count and the timer of a new head."""
        super().on_message_begin()
        self._in_head, self._read, self._lines = True, 0, 0
        if self._timer is None:
            self._await_head()

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the address."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a line of the head or of the trailers."""
        super().on_header(name, value)
        self._lines += 1
        self._count(len(name) + len(value) + 4)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > self.bounds.head_bytes or self._lines > self.bounds.head_lines:
            self._too_large = True
            # The parser stops and reports this like unreadable input.
            raise ValueError("the head is too large")

    def on_headers_complete(self) -> None:
        """Start the timer of the body after a complete head."""
        self._in_head, self._framing = False, 0
        self._stop_timer()
        super().on_headers_complete()
        if len(self.pipeline) > self.bounds.pipelined:
            raise ValueError("too many requests at once")
        self._body_began, self._body_bytes = self.loop.time(), 0
        self._timer = self.loop.call_later(self.bounds.body_seconds, self._body_is_due)

    def on_body(self, body: bytes) -> None:
        """Count a piece of the body."""
        self._body_bytes += len(body)
        self._framing = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Mark the request as complete: from here on the server has to act."""
        self._stop_timer()
        self._in_head, self._came, self._framing = True, 0, 0
        if self._slot is not None:
            self._slot.serve()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Keep the connection and its slot for the WebSocket."""
        self._upgraded = True
        self._stop_timer()
        if self._slot is not None:
            self._slot.wait()
        super().handle_websocket_upgrade()

    # What goes out

    def on_response_complete(self) -> None:
        """Mark the answer as complete: from here on the client has to act."""
        super().on_response_complete()
        if self._slot is not None and not self.pipeline:
            self._slot.wait()
        self._pace.watch(self.transport)

    def pause_writing(self) -> None:
        """Watch the pace of a client that reads more slowly than the server writes."""
        super().pause_writing()
        self._pace.watch(self.transport)

    def send_400_response(self, msg: str) -> None:
        """Refuse with 431 if the head was too large, else with 400."""
        self._refuse(431 if self._too_large else 400)

    # What takes too long

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.bounds.head_seconds, self._head_is_due)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_due(self) -> None:
        if self.flow.read_paused:
            # The server does not read, so the client cannot be late.
            self._await_head()
        elif self._came:
            self._refuse(408)
        else:
            self.transport.close()

    def _body_is_due(self) -> None:
        now, pause = self.loop.time(), self.bounds.body_seconds
        if not self.flow.read_paused:
            pause = self._body_began + pause + self._body_bytes / self.bounds.bytes_a_second - now
        if pause <= 0:
            self._refuse(408)
        else:
            self._timer = self.loop.call_later(pause, self._body_is_due)

    def _refuse(self, status: int) -> None:
        """Send the refusal unless an answer has begun, and end the connection."""
        if self._refused:
            return
        self._refused = True
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()
            return
        if cycle is not None:
            # No answer follows, and no more input is read.
            cycle.disconnected = True
            cycle.message_event.set()
            self.flow.resume_reading()
        words = REFUSALS[status].encode()
        self.transport.write(
            STATUS_LINE[status]
            + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: "
            + str(len(words)).encode() + b"\r\n\r\n" + words
        )  # fmt: skip
        self.loop.call_later(self.bounds.parting_seconds, self.transport.close)


def bounded_protocols(bounds: ConnectionBounds) -> tuple[type[BoundedHttp], type[BoundedSocket]]:
    """Build the protocols of one server, which counts its own connections."""
    slots = ConnectionSlots(bounds.connections)
    http = type("BoundedHttp", (BoundedHttp,), {"bounds": bounds, "slots": slots})
    return http, type("BoundedSocket", (BoundedSocket,), {"bounds": bounds})
