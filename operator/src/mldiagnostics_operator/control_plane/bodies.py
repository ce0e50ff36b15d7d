"""Bodies of requests: expanded and parsed within bounds; pure."""

from __future__ import annotations

import zlib
from typing import Any, Final, NamedTuple

import orjson
from mldiagnostics_api.reports import MAX_BODY_BYTES, MAX_DEPTH

from mldiagnostics_operator.control_plane.limits import MAX_VALUES

_GZIP: Final = 16 + zlib.MAX_WBITS
_VALUES: Final = (b"{", b"[", b",")
_IDENTITY: Final = frozenset({"", "identity"})


class InvalidBody(Exception):
    """A body that is not read; `status` is that of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Encoded(NamedTuple):
    """A body as it was sent."""

    content: bytes
    encoding: str = ""
    """Its `Content-Encoding`."""


def parse(body: Encoded) -> Any:
    """Return the JSON value of a body.

    Raises:
        InvalidBody: It is not gzip or JSON, or exceeds a bound.
    """
    encoding = body.encoding.strip().lower()
    text = body.content if encoding in _IDENTITY else _expand(body.content, encoding)
    if len(text) > MAX_BODY_BYTES:
        raise InvalidBody(413, f"body: has more than {MAX_BODY_BYTES} bytes; send fewer events at a time")
    if len(text) > MAX_VALUES and sum(map(text.count, _VALUES)) > MAX_VALUES:
        raise InvalidBody(413, f"body: has more than {MAX_VALUES} values; send fewer events at a time")
    try:
        value = orjson.loads(text)
    except ValueError as error:  # invalid UTF-8 and nesting beyond the parser's own limit included
        raise InvalidBody(400, f"body: is not JSON: {str(error)[:200]}; send a JSON object") from error
    if _is_deeper(value, MAX_DEPTH):
        raise InvalidBody(400, f"body: is nested deeper than {MAX_DEPTH}; send flatter configurations")
    return value


def _expand(body: bytes, encoding: str) -> bytes:
    if encoding != "gzip":
        raise InvalidBody(415, f"Content-Encoding: {encoding[:50]!r} is not supported; use gzip or none")
    expander = zlib.decompressobj(wbits=_GZIP)
    try:
        text = expander.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise InvalidBody(400, f"body: is not gzip: {error}; send gzip, or no Content-Encoding") from error
    if len(text) <= MAX_BODY_BYTES and not expander.eof:
        raise InvalidBody(400, "body: its gzip stream ends too early; send it whole")
    return text


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether objects and arrays are nested in more levels."""
    layer = [value]
    for _ in range(levels):
        below: list[object] = []
        for each in layer:
            if type(each) is dict:
                below.extend(child for child in each.values() if type(child) is dict or type(child) is list)
            elif type(each) is list:
                below.extend(child for child in each if type(child) is dict or type(child) is list)
        if not below:
            return False
        layer = below
    return True
