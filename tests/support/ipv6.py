"""IPv6 of this machine."""

import socket

import pytest


def has_ipv6() -> bool:
    """Return whether a program can listen on the loopback address."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HAS_IPV6 = has_ipv6()
needs_ipv6 = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
