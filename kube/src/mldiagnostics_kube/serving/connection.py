"""A connection, the stages of its life, and the longest time of each."""

import asyncio
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from time import monotonic
from typing import Final

from aiohttp import web

# Linux alone has it; elsewhere the handshake finds the end.
_CLOSED_BY_PEER: Final = getattr(select, "POLLRDHUP", 0)


class Stage(IntEnum):
    """The event that a connection waits for; the lowest stage is closed first."""

    NEW = 0
    """Its first request."""
    IDLE = 1
    """Its next request."""
    READING = 2
    """The rest of a body."""
    WRITING = 3
    """Its client, which has not read the whole response."""
    ANSWERING = 4
    """A response: it is not closed for another connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimes:
    """Longest time of a connection in its stages, in seconds."""

    first_request_s: float = 5.0
    """From its start to the end of the first request's head, TLS handshake included."""
    handshake_wait_s: float = 5.0
    """For the turn of its TLS handshake. Clients give up after ten seconds and need some of them for their request: if
    they were served later, a server that is behind would do nothing but handshakes with clients that give up next."""
    idle_s: float = 120.0
    """Between two requests. The API server's client closes after 90 s, so that it never uses a closed connection."""
    request_s: float = 60.0
    """For one request; the API server waits for at most 30 s."""
    young_s: float = 0.5
    """A burst of pods opens many connections at once: a younger one is not closed for another, which waits instead."""
    burst_s: float = 2.0
    """After so long without room it is a flood, not a burst: the oldest connections give way at once."""

    def of(self, stage: Stage) -> float:
        """Return the limit of a stage."""
        if stage is Stage.NEW:
            return self.first_request_s
        return self.idle_s if stage is Stage.IDLE else self.request_s


@dataclass(slots=True, eq=False)
class Connection:
    """An accepted connection."""

    address: str = ""
    """Address of its client."""
    handler: web.RequestHandler | None = None
    """Handles its requests."""
    since_s: float = field(default_factory=monotonic)
    """Time when its stage began."""
    stage: Stage = Stage.NEW
    large_bytes: int = 0
    """Size of its body if that is large, else 0."""
    transport: asyncio.Transport | None = None
    """None during the handshake."""
    handshake: asyncio.Task[None] | None = None
    entered: Callable[["Connection"], None] = lambda _: None
    """Called at the beginning of each stage."""

    def enter(self, stage: Stage) -> None:
        """Begin a stage."""
        self.stage = stage
        self.since_s = monotonic()
        self.entered(self)

    def rank(self, young_since_s: float) -> tuple[Stage, float]:
        """Return the rank among the connections to close; the lowest is the first.

        A connection that began after `young_since_s` ranks behind idle ones.
        """
        young = self.stage is Stage.NEW and self.since_s > young_since_s
        return Stage.READING if young else self.stage, self.since_s

    def abort(self) -> None:
        """Close the connection without waiting for its client."""
        if self.transport:
            self.transport.abort()
        elif self.handshake:
            self.handshake.cancel()


def is_given_up(accepted: socket.socket) -> bool:
    """Return whether the client has closed a connection before its TLS handshake.

    Clients close connections that wait for too long. Without this look, a server that is behind would spend its time on
    handshakes with nobody, and stay behind.
    """
    state = select.poll()
    state.register(accepted, _CLOSED_BY_PEER)
    return bool(state.poll(0))
