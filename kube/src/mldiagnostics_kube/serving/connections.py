"""Accepts connections up to a limit; a new one waits, or replaces the oldest."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf, isfinite
from time import monotonic
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from typing_extensions import override

from mldiagnostics_kube.serving.closing_order import ClosingOrder
from mldiagnostics_kube.serving.connection import Connection, ConnectionTimes, Stage, is_given_up
from mldiagnostics_kube.serving.paced_turns import PacedTurns
from mldiagnostics_kube.serving.rates import RateLimits

_log: Final = logging.getLogger(__name__)
_http_log: Final = logging.getLogger(f"{__name__}.http")
# Any client can send invalid requests as fast as it likes.
_http_log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))

HEAD_LINE_BYTES: Final = 4096
HEAD_LINES: Final = 32

# The kernel's memory of a connection. It also bounds one read: a TLS connection keeps a buffer of that size.
_RECEIVE_BUFFER_BYTES: Final = 32 * 1024
_STREAM_BYTES: Final = 32 * 1024
_TLS_SHUTDOWN_S: Final = 1.0
_LINGER_S: Final = 0.5  # for the sender of a rejected body to read the response
_SWEEP_S: Final = 0.5
_ACCEPT_RETRY_S: Final = 0.1
_BURST_S: Final = 10.0
_ADDRESSES: Final = 16_384  # whose rates are remembered

BACKLOG: Final = 512
"""Connections that wait in the kernel until they are accepted."""
ACCEPTED_AT_ONCE: Final = 16
"""Connections that are accepted in one turn of the event loop.

A turn takes 10 ms and more under load. With one in each, the backlog takes longer than clients wait, so that each
connection is given up by its client before it is accepted.
"""
BUSY_SHARE: Final = 1 / 8
"""With more connections than this part of the limit in the middle of a request, one is accepted in each turn."""
BACKLOG_BYTES: Final = BACKLOG * _RECEIVE_BUFFER_BYTES
"""Most memory of the kernel for them."""


class ConnectionServer(web.Server):
    """An HTTP server on a bounded number of connections.

    Args:
        handle: Handles the requests; cancelled if the connection is lost.
        limit: Most connections at a time, handshakes included.
        new_per_s: New connections of one address; ten times as many in a burst.
        handshakes_per_s: TLS handshakes of all addresses, which get them in turn.
        times: Longest times of a connection.
        closed: Called with `TooMany`, `TooFast` or `TimedOut` for each connection that the server closes first.
        head_line_bytes: Longest line of a request's head.
        head_lines: Most lines of a request's head.
        **options: Further options of `web.Server`.
    """

    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        limit: int,
        new_per_s: float = inf,
        handshakes_per_s: float = inf,
        times: ConnectionTimes,
        closed: Callable[[str], None],
        head_line_bytes: int = HEAD_LINE_BYTES,
        head_lines: int = HEAD_LINES,
        **options: Any,
    ) -> None:
        super().__init__(
            handle,
            logger=_http_log,
            access_log=None,
            auto_decompress=False,
            lingering_time=_LINGER_S,
            max_line_size=head_line_bytes,
            max_field_size=head_line_bytes,
            max_headers=head_lines,
            read_bufsize=_STREAM_BYTES,
            **{"handler_cancellation": True, **options},
        )
        self._limit = limit
        self._rates = RateLimits(new_per_s, _BURST_S * new_per_s, most=_ADDRESSES) if isfinite(new_per_s) else None
        self._times = times
        self._closed = closed
        self._open: dict[web.RequestHandler, Connection] = {}
        self._order = ClosingOrder(limit)
        self._turns = PacedTurns(handshakes_per_s) if isfinite(handshakes_per_s) else None
        self._changed = asyncio.Event()
        self._full_since_s: float | None = None

    def connection(self, request: web.BaseRequest) -> Connection:
        """Return the connection of a request; a new one if it was just closed."""
        return self._open.get(request.protocol) or Connection()

    def longest_large_body(self) -> Connection | None:
        """Return the connection whose large body has been arriving for the longest time."""
        return next((each for each in self._order.in_stage(Stage.READING) if each.large_bytes), None)

    async def accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept connections until cancelled."""
        while True:
            try:
                for _ in range(ACCEPTED_AT_ONCE):
                    accepted, (address, *_) = listener.accept()
                    accepted.setblocking(False)  # noqa: FBT003 - the socket's own signature
                    if tls and is_given_up(accepted):
                        accepted.close()
                        continue
                    await self._admit(accepted, address, tls)
                    if self._is_busy():
                        break
            except BlockingIOError:  # no other connection waits
                await _connection_waits(listener)
            except OSError as error:  # the client has gone, or the process has too many open files
                _log.warning("A connection was not accepted: %(error)s", {"error": error})
                await asyncio.sleep(_ACCEPT_RETRY_S)
            await asyncio.sleep(0)  # requests come before a flood of connections

    async def close_late(self) -> None:
        """Close connections that wait for too long, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            now_s = monotonic()
            for handler, connection in list(self._open.items()):
                if now_s - connection.since_s > self._times.of(connection.stage):
                    self._close(handler, "TimedOut")

    def close_handshakes(self) -> None:
        """Close all connections without a finished handshake."""
        for connection in list(self._open.values()):
            if connection.transport is None:
                connection.abort()

    def _is_busy(self) -> bool:
        """Return whether many connections have a request; others wait in the kernel."""
        waiting = self._order.count(Stage.IDLE) + self._order.count(Stage.NEW)
        return len(self._open) - waiting >= BUSY_SHARE * self._limit

    async def _admit(self, accepted: socket.socket, address: str, tls: ssl.SSLContext | None) -> None:
        """Start a connection once there is room, or close it."""
        if self._rates is not None and self._rates.take(address, monotonic()):
            self._closed("TooFast")
            accepted.close()
            return
        try:
            await self._wait_for_room()
        except asyncio.CancelledError:
            accepted.close()
            raise
        if self._has_room():
            self._start(accepted, address, tls, asyncio.get_running_loop())
        else:
            accepted.close()

    async def _wait_for_room(self) -> None:
        """Let young connections and requests in flight finish; others wait in the kernel."""
        until_s = monotonic() + self._times.young_s
        while len(self._open) >= self._limit:
            first = self._first_to_close()
            now_s = monotonic()
            if first.stage is Stage.IDLE:
                break
            self._full_since_s = self._full_since_s or now_s
            old_s = until_s if first.stage is Stage.ANSWERING else first.since_s + self._times.young_s
            wait_s = min(until_s, old_s, self._full_since_s + self._times.burst_s) - now_s
            if wait_s <= 0 or first.stage in (Stage.READING, Stage.WRITING):
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
        self._full_since_s = None

    def _first_to_close(self) -> Connection:
        """Return the connection to close for a new one."""
        return self._order.first(monotonic() - self._times.young_s)

    def _has_room(self) -> bool:
        """Return whether a connection may be added; close another for it if necessary."""
        if len(self._open) < self._limit:
            return True
        oldest = self._first_to_close()
        if oldest.stage is Stage.ANSWERING or oldest.handler is None:
            self._closed("TooMany")
            return False
        self._close(oldest.handler, "TooMany")
        return True

    def _close(self, handler: web.RequestHandler, reason: str) -> None:
        self._closed(reason)
        if connection := self._forget(handler):
            connection.abort()

    def _forget(self, handler: web.RequestHandler) -> Connection | None:
        connection = self._open.pop(handler, None)
        if connection is not None:
            self._order.remove(connection)
        return connection

    def _entered(self, connection: Connection) -> None:
        self._order.move(connection)
        self._changed.set()

    def _start(
        self, accepted: socket.socket, address: str, tls: ssl.SSLContext | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        handler = self()
        connection = self._open[handler] = Connection(address=address, handler=handler, entered=self._entered)
        self._order.add(connection)
        task = connection.handshake = loop.create_task(self._handshake(connection, handler, accepted, tls, loop))

        def finished(_: asyncio.Task[None]) -> None:
            connection.handshake = None
            if connection.transport is None:
                self._forget(handler)
                self._changed.set()
                accepted.close()

        task.add_done_callback(finished)

    async def _handshake(
        self,
        connection: Connection,
        handler: web.RequestHandler,
        accepted: socket.socket,
        tls: ssl.SSLContext | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        if tls and self._turns:

            def is_over() -> bool:
                return monotonic() - connection.since_s > self._times.handshake_wait_s or is_given_up(accepted)

            if not await self._turns.take(connection.address, is_over=is_over):
                if not is_given_up(accepted):
                    self._closed("TimedOut")
                return
        first_s = self._times.first_request_s
        times = {"ssl_handshake_timeout": first_s, "ssl_shutdown_timeout": _TLS_SHUTDOWN_S} if tls else {}
        with suppress(OSError):  # the client has gone, does not speak TLS, or rejects the certificate
            await loop.connect_accepted_socket(lambda: handler, accepted, ssl=tls, **times)

    @override
    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        connection = self._open.get(handler)
        if connection is None:  # closed for another one at the end of its handshake
            transport.abort()
        else:
            connection.transport = transport

    @override
    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._forget(handler)
        self._changed.set()


def listen(port: int, host: str = "") -> socket.socket:
    """Open one socket that listens on a host, or on all IPv4 and IPv6 addresses.

    Raises:
        OSError: The port is taken, or this machine does not have the address.
    """
    if host:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = min(addresses, key=lambda each: each[0] != socket.AF_INET)
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    else:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        listener = socket.create_server(("", port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    listener.setblocking(False)  # noqa: FBT003 - the socket's own signature
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    return listener


async def _connection_waits(listener: socket.socket) -> None:
    """Wait until a connection can be accepted.

    `loop.sock_accept` logs a traceback, and loses the connection, if it is cancelled in the turn in which one arrives.
    """
    loop, can_accept = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, can_accept.set)
    try:
        await can_accept.wait()
    finally:
        loop.remove_reader(listener)
