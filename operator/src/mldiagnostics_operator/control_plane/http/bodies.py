"""Bodies of requests: expanded and taken apart within bounds; pure.

A body is never parsed as a whole, because its objects in memory may have thirty times its size. Its large parts, events
and configurations, stay text until their turn.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import orjson
from mldiagnostics_api.reports.models import (
    MAX_BODY_BYTES,
    MAX_CONFIG_BYTES,
    MAX_DEPTH,
    InvalidReport,
    Report,
    read_report,
)
from msgspec import Raw

from mldiagnostics_operator.control_plane.limits import INLINE_BYTES, MAX_REST_BYTES, MAX_VALUES
from mldiagnostics_operator.control_plane.slices import finished

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_GZIP: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 256 * 1024
_VALUES: Final = (b"{", b"[", b",")
_IDENTITY: Final = frozenset({"", "identity"})
_NONE: Final = Raw(b"null")


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


class EventItems(msgspec.Struct):
    """The events of a report, not parsed yet."""

    first: int = 0
    items: Raw = Raw(b"[]")


class Sections(msgspec.Struct):
    """The configurations of a report, whose values are not parsed yet."""

    software: dict[str, Raw] | None = None
    hardware: dict[str, Raw] | None = None
    user: dict[str, Raw] | None = None

    def by_name(self) -> dict[str, Mapping[str, bytes]]:
        """Return the entries of each section."""
        return {name: getattr(self, name) or {} for name in self.__struct_fields__}


class PackedBody(NamedTuple):
    """The parts of a report."""

    report: Report
    events: EventItems | None
    configs: Sections | None


_FIELDS: Final = tuple(field.alias or name for name, field in Report.model_fields.items())
_ENVELOPE: Final = msgspec.json.Decoder(msgspec.defstruct("_Envelope", [(name, Raw, _NONE) for name in _FIELDS]))
_EVENTS: Final = msgspec.json.Decoder(EventItems | None)
_SECTIONS: Final = msgspec.json.Decoder(Sections | None)


def expanded(body: Encoded, *, piece: int = _PIECE) -> Generator[None, None, bytes]:
    """Return the text of a body; yield after each piece, of a quarter of a megabyte.

    Raises:
        InvalidBody: It is not gzip, or too large.
    """
    encoding = body.encoding.strip().lower()
    if encoding in _IDENTITY:
        if len(body.content) > MAX_BODY_BYTES:
            raise _too_large()
        return body.content
    if encoding != "gzip":
        raise InvalidBody(415, f"Content-Encoding: {encoding[:50]!r} is not supported; use gzip or none")
    expander = zlib.decompressobj(wbits=_GZIP)
    text, rest = bytearray(), body.content
    while not expander.eof:
        try:
            part = expander.decompress(rest, piece)
        except zlib.error as error:
            raise InvalidBody(400, f"body: is not gzip: {error}; send gzip, or no Content-Encoding") from error
        if not part and not expander.eof:
            raise InvalidBody(400, "body: its gzip stream ends too early; send it whole")
        text += part
        if len(text) > MAX_BODY_BYTES:
            raise _too_large()
        rest = expander.unconsumed_tail
        if len(part) == piece:
            yield
    return bytes(text)


def expanded_inline(body: Encoded) -> bytes | None:
    """Return the text of a small body; None for a larger one. Raises InvalidBody."""
    if len(body.content) > INLINE_BYTES:
        return None
    work = expanded(body, piece=INLINE_BYTES)
    try:
        next(work)
    except StopIteration as end:
        text: bytes = end.value
        return text if len(text) <= INLINE_BYTES else None
    return None


def simple_json(body: Encoded) -> Any:
    """Return the JSON value of a body with few values.

    Raises:
        InvalidBody: It is not gzip or JSON, or exceeds a bound.
    """
    return _loaded(finished(expanded(body)), most_bytes=MAX_BODY_BYTES)


def parse(text: bytes) -> PackedBody:
    """Return the parts of a report.

    Raises:
        InvalidBody: It is not JSON, or exceeds a bound.
        InvalidReport: Fields are invalid.
    """
    try:
        envelope = msgspec.structs.asdict(_ENVELOPE.decode(text))
        events = _EVENTS.decode(envelope.pop("events"))
        configs = _sections(envelope.pop("configs"))
    except msgspec.ValidationError as error:
        raise InvalidReport(f"report: {error}; send a report of version 1") from error
    except (ValueError, RecursionError) as error:
        raise InvalidBody(400, f"body: is not JSON: {str(error)[:200]}; send a JSON object") from error
    if events is not None and not 0 <= events.first <= _LARGEST_NUMBER:
        raise InvalidReport("report: events.first: is not a number from 0 to 2^53; send a report of version 1")
    rest = b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), value) for name, value in envelope.items())
    return PackedBody(read_report(_loaded(rest)), events, configs)


_LARGEST_NUMBER: Final = 2**53


def _sections(raw: Raw) -> Sections | None:
    if len(raw) > MAX_CONFIG_BYTES or bytes(raw).count(b":") > MAX_VALUES:
        return Sections()  # the files of the run have them
    sections: Sections | None = _SECTIONS.decode(raw)
    return sections


def _loaded(rest: bytes, *, most_bytes: int = MAX_REST_BYTES) -> Any:
    """Parse the parts that are small in every report."""
    if len(rest) > most_bytes or sum(map(rest.count, _VALUES)) > MAX_VALUES:
        raise InvalidBody(
            413,
            f"body: has more than {most_bytes} bytes or {MAX_VALUES} values beside its events and configurations; "
            "send less",
        )
    try:
        value = orjson.loads(rest)
    except ValueError as error:  # invalid UTF-8 and nesting beyond the parser's own limit included
        raise InvalidBody(400, f"body: is not JSON: {str(error)[:200]}; send a JSON object") from error
    if _is_deeper(value, MAX_DEPTH):
        raise InvalidBody(400, f"body: is nested deeper than {MAX_DEPTH}; send flatter values")
    return value


def _too_large() -> InvalidBody:
    return InvalidBody(413, f"body: has more than {MAX_BODY_BYTES} bytes; send fewer events at a time")


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
