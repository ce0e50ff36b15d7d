"""Parsing of addresses: `host:port`, `10.0.0.7:9999`, `[fd00::7]:9999`."""

import ipaddress
import re
from collections.abc import Sequence

from mldiagnostics.capture.model import Target
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import file_stem

DEFAULT_PORT = 9999
"""Port of the profiler server where an address has none."""
MAX_PORT = 65535

_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_PORT = re.compile(r"[0-9]{1,5}")
_FORMS = "write host:port, 10.0.0.7:9999 or [fd00::7]:9999"


def targets_of(addresses: Sequence[str], *, workload_root: str | None = None) -> list[Target]:
    """Return one target per address, in order.

    The file stem is host, `_` and port, as in XProf's client.

    Raises:
        ConfigurationError: an address is not valid or appears twice, or there is none.
    """
    targets: dict[tuple[str, int], Target] = {}
    for address in addresses:
        host, port = _parse(address)
        endpoint = host.lower().removesuffix("."), port  # host names ignore case and a final dot
        if endpoint in targets:
            raise ConfigurationError(
                f"addresses: {address!r} appears twice, and a process records one session at a time; pass it once"
            )
        targets[endpoint] = Target(host, port, file_stem(host, port), workload_root=workload_root)
    if not targets:
        raise ConfigurationError(f"addresses: the list is empty; {_FORMS}")
    return list(targets.values())


def _parse(address: str) -> tuple[str, int]:
    host, colon, digits = address.rpartition(":")
    if not colon or not _PORT.fullmatch(digits) or not 1 <= int(digits) <= 65535:
        raise ConfigurationError(f"addresses: {address!r} has no port between 1 and 65535; {_FORMS}")
    if host.startswith("[") and host.endswith("]"):
        return _ip(host[1:-1], version=6, address=address), int(digits)
    if re.fullmatch(r"[0-9.]+", host):
        return _ip(host, version=4, address=address), int(digits)
    if not _NAME.fullmatch(host) or len(host) > 253:
        raise ConfigurationError(f"addresses: {address!r} has no valid host name; {_FORMS}")
    return host, int(digits)


def _ip(text: str, *, version: int, address: str) -> str:
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        ip = None
    if ip is None or ip.version != version:
        raise ConfigurationError(f"addresses: {address!r} has no valid IPv{version} address; {_FORMS}")
    return str(ip)
