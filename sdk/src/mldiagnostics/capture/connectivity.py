"""What a plain TCP connection says about an address, to explain why a call to it failed."""

import asyncio
import errno
import socket
from enum import Enum, auto

_NOBODY_THERE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.ETIMEDOUT, errno.EHOSTDOWN}


class Connectivity(Enum):
    """How far a connection gets."""

    ACCEPTED = auto()
    REFUSED = auto()
    NO_ANSWER = auto()
    NO_ROUTE = auto()
    UNKNOWN_NAME = auto()


async def reach(host: str, port: int, *, timeout_s: float) -> Connectivity:
    """Connect, say nothing, hang up."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), timeout_s)
    except (asyncio.TimeoutError, TimeoutError):
        return Connectivity.NO_ANSWER
    except socket.gaierror:
        return Connectivity.UNKNOWN_NAME
    except OSError as error:
        return Connectivity.NO_ROUTE if error.errno in _NOBODY_THERE else Connectivity.REFUSED
    writer.transport.abort()
    return Connectivity.ACCEPTED
