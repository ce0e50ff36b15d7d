"""Reader of one log of any size: its entries, and the parts that cannot be read."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import time
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

from mldiagnostics_cli.trace.entries import CorruptPart, LogEntry, MetricSample, of_document, reason_of
from mldiagnostics_cli.trace.text_lines import TextLogParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


LogItem = LogEntry | MetricSample | CorruptPart

BLOCK_BYTES = 1024 * 1024
MAX_LINE = 4 * 1024 * 1024
"""A longer line or JSON object is skipped; Cloud Logging allows 256 KiB."""

_GZIP = b"\x1f\x8b"
_ARRAY = re.compile(r"\s*\[\s*[{\]]")
_PRETTY = re.compile(r"\s*\{[ \t]*\r?\n")
_BETWEEN = re.compile(r"[\s,\[\]]*")
_NEXT_OBJECT = re.compile(r"\n\s{0,2}(?=\{)|\},\s*(?=\{)")
_CSV_TIME = re.compile(r"\b(timestamp|receiveTimestamp)\b")

_HEAD_CHARACTERS = 4096
"""The format is recognised by so many characters; a pipe or a part of a gzip file may return fewer."""

_DAY_US = 24 * 3600 * 10**6


def read_log(file: IO[bytes]) -> Iterator[LogItem]:
    """Yield the items of a log in the order of the file, in constant memory.

    The format is found by its start: an array or a sequence of JSON objects as `gcloud logging read --format=json`
    writes it, one JSON object in a line, CSV of Cloud Logging, or lines of text; each of them with gzip too.
    """
    start = cast("Any", file).read1(BLOCK_BYTES)
    whole = _Joined(start, file)
    damage: list[CorruptPart] = []
    is_gzip = start.startswith(_GZIP)
    blocks = _text_blocks(gzip.GzipFile(fileobj=cast("Any", whole)).read1 if is_gzip else whole.read, damage)
    first = _head(blocks).removeprefix("\ufeff")
    if _ARRAY.match(first) or _PRETTY.match(first):
        yield from _json_entries(first, blocks)
    elif not first.startswith("{") and _is_csv(first):
        yield from _csv_entries(first, blocks)
    else:
        yield from _line_entries(first, blocks)
    yield from damage


class _Joined:
    """A file whose first bytes were read already.

    Each read is one of the system: a loop of them, as `read` has it, would not see Ctrl-C while a pipe is slow.
    """

    def __init__(self, start: bytes, file: Any) -> None:
        self._start, self._file = start, file

    def read(self, size: int) -> bytes:
        start, self._start = self._start[:size], self._start[size:]
        return start or self._file.read1(size)


def _text_blocks(read: Callable[[int], bytes], damage: list[CorruptPart]) -> Iterator[str]:
    """Yield the text up to its end or its first damaged bytes.

    These are added to `damage`.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        while block := read(BLOCK_BYTES):
            yield decoder.decode(block)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        damage.append(CorruptPart("end of the file", f"is not whole: {error}"))
    if rest := decoder.decode(b"", final=True):
        yield rest


def _head(blocks: Iterator[str]) -> str:
    head = ""
    while len(head) < _HEAD_CHARACTERS and (block := next(blocks, None)) is not None:
        head += block
    return head


def _is_csv(first: str) -> bool:
    head = first.partition("\n")[0]
    return "," in head and _CSV_TIME.search(head) is not None


def _lines(first: str, blocks: Iterator[str]) -> Iterator[str | None]:
    """Yield lines without their ends; None for a line that is too long."""
    rest, is_long = first, False
    while True:
        *lines, rest = rest.split("\n")
        for line in lines:
            yield None if is_long else line.removesuffix("\r")
            is_long = False
        if len(rest) > MAX_LINE:
            rest, is_long = "", True
        block = next(blocks, None)
        if block is None:
            break
        rest += block
    if rest or is_long:
        yield None if is_long else rest


def _line_entries(first: str, blocks: Iterator[str]) -> Iterator[LogItem]:
    parser = TextLogParser(latest=time.time_ns() // 1000 + _DAY_US)
    for line in _lines(first, blocks):
        yield from parser.feed(line)
    yield from parser.finish()


def _json_entries(first: str, blocks: Iterator[str]) -> Iterator[LogItem]:
    decode = json.JSONDecoder().raw_decode
    text, at, number, is_last = first, 0, 0, False
    while True:
        at = cast("re.Match[str]", _BETWEEN.match(text, at)).end()
        try:
            if at == len(text):
                raise ValueError  # noqa: TRY301 - the next block is needed, as for an object that is cut
            document, at = decode(text, at)
        except (ValueError, RecursionError):
            if not is_last and len(text) - at <= MAX_LINE:
                block = next(blocks, None)
                is_last = block is None
                text, at = text[at:] + (block or ""), 0
                continue
            if at == len(text):
                return
            number += 1
            yield CorruptPart(f"entry {number}", "is not JSON")
            following = _NEXT_OBJECT.search(text, at + 1)
            at = len(text) if following is None else following.end()
            continue
        number += 1
        yield from _of_object(document, f"entry {number}")


def _csv_entries(first: str, blocks: Iterator[str]) -> Iterator[LogItem]:
    lines = (f"{line}\n" for line in _lines(first, blocks) if line is not None)
    rows = csv.DictReader(lines)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield CorruptPart(f"line {rows.line_num}", str(error))
            continue
        yield from _of_object(_nested(row), f"line {rows.line_num}")


def _of_object(document: Any, place: str) -> Iterator[LogItem]:
    try:
        entry = of_document(document)
    except (ValueError, RecursionError) as error:
        yield CorruptPart(place, reason_of(error))
    else:
        if entry is not None:
            yield entry


def _nested(row: Mapping[str | None, Any]) -> dict[str, Any]:
    """Return the object of a row whose columns are `jsonPayload.message` and the like."""
    document: dict[str, Any] = {}
    for column, value in row.items():
        if column and value:
            *parents, name = column.split(".")
            fields = document
            for parent in parents:
                below = fields.setdefault(parent, {})
                fields = below if isinstance(below, dict) else {}
            fields[name] = value
    return document
