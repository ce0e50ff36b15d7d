"""Parse URLs of sinks; pure.

A list of sinks is a string with commas between the URLs. A comma is never part of a URL: write `%2C` in a `file:///`
URL for a directory that has one in its name.
"""

from __future__ import annotations

import re
from typing import Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import BUCKET_SCHEMES, is_bucket

_ANY: Final = r"[^,\x00-\x1f\x7f]"
_PATH: Final = rf"(?!.*://){_ANY}+"
_PLACE: Final = rf"(?:{_PATH}|file:///{_ANY}*|(?:{'|'.join(BUCKET_SCHEMES)})://(?!/){_ANY}+)"
_HOST: Final = r"(?:[A-Za-z0-9._-]+|\[(?P<ipv6>[0-9A-Fa-f:.]+)\])"
_PORT: Final = r"(?P<port>[1-9][0-9]{0,4})"
_SERVER: Final = rf"{_HOST}(?::{_PORT})?"
_HTTP: Final = rf"{_SERVER}(?:/(?!.* ){_ANY}*)?"

_FORMS: Final = {
    "cloud-logging": (rf"(?:https?://{_HTTP})?", "cloud-logging: or cloud-logging:https://host"),
    "jsonl": (
        rf"{_PLACE}?",
        "jsonl:, jsonl:/path, jsonl:file:///path, jsonl:gs://bucket/prefix, jsonl:s3://… or jsonl:az://…",
    ),
    "mlflow": (rf"{_ANY}*", "mlflow: or mlflow:RUN_ID"),
    "otlp": (rf"(?://)?(?:{_SERVER}/?)?", "otlp: or otlp://host:4317"),
    "otlp+http": (rf"(?://)?{_HTTP}", "otlp+http://host:4318"),
    "otlp+https": (rf"(?://)?{_HTTP}", "otlp+https://host"),
    "prometheus": (rf"(?://)?{_HOST}?:(?:0|{_PORT})", "prometheus::9464 or prometheus:127.0.0.1:9464"),
    "stdout": (r"(?://)?", "stdout:"),
    "tensorboard": (
        _PLACE,
        "tensorboard:/path, tensorboard:file:///path, tensorboard:gs://bucket/logs, :s3://… or :az://…",
    ),
    "wandb": ("", "wandb:"),
}
"""Scheme -> pattern of its addresses, and examples."""

SCHEMES: Final = tuple(_FORMS)
_STORED: Final = frozenset({"jsonl", "tensorboard"})
"""Sinks whose address is a location."""

_ADDRESSES: Final = {scheme: re.compile(address) for scheme, (address, _) in _FORMS.items()}
MAX_PORT: Final = 65535
_SHOWN: Final = 80
"""Length of a URL in a message."""


def split_sinks(text: str) -> tuple[str, ...]:
    """Return the items of a comma-separated list, each once; they may be invalid."""
    return tuple(dict.fromkeys(stripped for item in text.split(",") if (stripped := item.strip())))


def parse_sinks(text: str) -> tuple[str, ...]:
    """Return the sink URLs of a comma-separated list.

    Raises:
        ConfigurationError: an item is not a sink URL; the message has the first one and valid examples.
    """
    urls = split_sinks(text)
    for url in urls:
        check_sink_url(url)
    return urls


def check_sink_url(url: str) -> None:
    """Check that a string is the URL of one sink.

    Raises:
        ConfigurationError: it is not; the message has valid examples.
    """
    scheme, colon, address = url.partition(":")
    if scheme not in _FORMS:
        known = ", ".join(f"{name}:" for name in SCHEMES)
        raise ConfigurationError(f"{_shown(url)}: not a sink URL; begin it with one of {known}")
    if not colon or not _is_address(scheme, address):
        raise ConfigurationError(f"{_shown(url)}: not a URL of the sink {scheme}; write {_FORMS[scheme][1]}")
    if scheme in _STORED and is_bucket(address):
        from mldiagnostics.bucket_urls import BucketUrl  # noqa: PLC0415 - not with the first import

        BucketUrl.parse(address)


def _is_address(scheme: str, address: str) -> bool:
    match = _ADDRESSES[scheme].fullmatch(address)
    if match is None:
        return False
    parts = match.groupdict()
    port, ipv6 = parts.get("port"), parts.get("ipv6")
    return int(port or 1) <= MAX_PORT and (ipv6 is None or _is_ipv6(ipv6))


def _is_ipv6(text: str) -> bool:
    from ipaddress import AddressValueError, IPv6Address  # noqa: PLC0415 - not with the first import

    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _shown(url: str) -> str:
    return repr(url if len(url) <= _SHOWN else f"{url[:_SHOWN]}…")
