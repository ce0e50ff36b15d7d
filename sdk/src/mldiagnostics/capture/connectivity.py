"""A TCP connection test, to explain why a call to an address failed."""

import asyncio
import errno
import socket
from enum import Enum, auto

from mldiagnostics.capture.deadline import TIMEOUTS, Deadline

_NO_ROUTE_ERRORS = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.ETIMEDOUT, errno.EHOSTDOWN}


class Connectivity(Enum):
    """Result of a connection attempt."""

    ACCEPTED = auto()
    REFUSED = auto()
    NO_ANSWER = auto()
    NO_ROUTE = auto()
    UNKNOWN_NAME = auto()


async def check_connection(host: str, port: int, *, timeout_s: float) -> Connectivity:
    """Open a TCP connection, close it, and return the result."""
    try:
        _, writer = await Deadline(timeout_s).bound(asyncio.open_connection(host, port))
    except TIMEOUTS:
        return Connectivity.NO_ANSWER
    except socket.gaierror:
        return Connectivity.UNKNOWN_NAME
    except OSError as error:
        return Connectivity.NO_ROUTE if error.errno in _NO_ROUTE_ERRORS else Connectivity.REFUSED
    writer.transport.abort()
    return Connectivity.ACCEPTED
