"""Points of metrics out of blocks of lines of records; pure.

A block whose lines all start as the SDK starts them, and whose lines of the wanted metrics all match the expression, is
read in columns, several times as fast as JSON. Any other block is read line by line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mldiagnostics.pipeline.records import decode
from mldiagnostics.runs.points import NO_STEP, PointColumns
from mldiagnostics.runs.uniform_block import uniform_points

if TYPE_CHECKING:
    from collections.abc import Collection

    from mldiagnostics.runs.points import PointSource


Labels: TypeAlias = "tuple[tuple[str, str], ...]"

_START = b'\n{"v":1,"kind":"'
_METRIC = b'"kind":"metric"'
_NUMBER = rb"([-+.0-9e]+)"
_REST = rb'(?:,"step":(-?[0-9]{1,18}))?(?:,"labels":(\{[^{}]*\}))?(?:,"unit":("[^"]*"))?'
_MAX_LABELS = 4096
_MAX_CACHED_BYTES = 4096
"""Longer names and sets of labels are parsed each time: the two caches have at most 32 MiB."""
_MAX_STEP = 2**63


class CurveKey(NamedTuple):
    """A curve of one process: a metric with one set of labels.

    `device` is the index in a list with one number per device.
    """

    metric: str
    labels: Labels
    device: int | None


class CurvePoints(NamedTuple):
    """New points of one curve."""

    unit: str
    points: PointSource


_Curves: TypeAlias = "dict[CurveKey, tuple[str, PointColumns]]"


class MetricLines:
    """Parses the lines of metrics; `names` are those that are wanted, None for all."""

    def __init__(self, names: Collection[str] | None) -> None:
        self.bad_lines = 0
        """Number of unreadable lines so far: broken, or of a later schema.

        Lines of other metrics that start as the SDK starts them are not parsed.
        """
        self._names = None if names is None else frozenset(names)
        quoted = [] if names is None else [json.dumps(name).encode() for name in self._names or ()]
        self._marks = (_METRIC,) if names is None else tuple(b'"name":' + name + b',"rank":' for name in quoted)
        name = rb'"[^"]*"' if names is None else b"|".join(map(re.escape, quoted)) or rb"(?!)"
        start = (
            rb'\n\{"v":1,"kind":"metric","t":' + _NUMBER + rb',"name":(' + name + rb'),"rank":[0-9]+,"attempt":[0-9]+,'
        )
        self._known = re.compile(
            start + rb'"value":(?:' + _NUMBER + rb'|null,"nonfinite":"([A-Za-z-]+)")' + _REST + rb"\}(?=\n)"
        )
        self._has_one_curve = True
        """Whether the last block had the points of one curve alone, with finite values."""
        self._texts: dict[bytes, str] = {}
        self._labels: dict[bytes, Labels] = {b"": ()}

    def parse(self, block: bytes) -> dict[CurveKey, CurvePoints]:
        """Return the points of whole lines, by curve, each in the order of the lines."""
        padded = b"\n" + block
        if padded.count(_START) == block.count(b"\n"):
            size = sum(map(padded.count, self._marks))
            if not size:
                return {}
            if self._has_one_curve and (curve := self._one_uniform_curve(padded, size)):
                return curve
            matches = self._known.findall(padded)
            if len(matches) == size and (read := self._columns(matches)) is not None:
                self._has_one_curve = len(read) == 1
                return read
        curves: _Curves = {}
        for line in block.split(b"\n"):
            self._parse_line(line, curves)
        return {key: CurvePoints(unit, points) for key, (unit, points) in curves.items()}

    def _one_uniform_curve(self, padded: bytes, size: int) -> dict[CurveKey, CurvePoints] | None:
        """Return the points of lines that differ in numbers alone, else None."""
        first = self._known.match(padded)
        points = uniform_points(padded, first, size) if first else None
        if first is None or points is None:
            return None
        try:
            key = CurveKey(self._text(first[2]), self._parsed_labels(first[6] or b""), None)
        except (ValueError, RecursionError):
            return None
        return {key: CurvePoints(self._text(first[7] or b""), points)}

    def _columns(self, matches: list[tuple[bytes, ...]]) -> dict[CurveKey, CurvePoints] | None:
        """Return the points of lines that match; None if they must be read one by one."""
        groups: dict[tuple[bytes, bytes], list[tuple[bytes, ...]]] = {}
        for match in matches:
            groups.setdefault((match[1], match[5]), []).append(match)
        try:
            curves = dict(self._one_curve(tuple(zip(*group, strict=True))) for group in groups.values())
        except (ValueError, OverflowError, RecursionError):
            return None
        return curves if len(curves) == len(groups) else None  # the same labels can come in another order

    def _one_curve(self, columns: tuple[tuple[bytes, ...], ...]) -> tuple[CurveKey, CurvePoints]:
        ts, names, values, nonfinite, steps, labels, units = columns
        key = CurveKey(self._text(names[0]), self._parsed_labels(labels[0]), None)
        numbers = map(float, map(bytes.__add__, values, nonfinite) if any(nonfinite) else values)
        known_steps = map(int, steps) if all(steps) else [int(step) if step else NO_STEP for step in steps]
        return key, CurvePoints(self._text(units[-1]), PointColumns(map(float, ts), known_steps, numbers))

    def _parse_line(self, line: bytes, curves: _Curves) -> None:
        if line.startswith(_START[1:]) and not any(mark in line for mark in self._marks):
            return
        if not line.strip():
            return
        try:
            if match := self._known.match(b"\n" + line + b"\n"):
                key, added = self._one_curve(tuple((text,) for text in match.groups(b"")))
                curves.setdefault(key, (added.unit, PointColumns()))[1].extend(added.points)
                return
            record = decode(line)
            if record.kind == "metric" and (self._names is None or record.name in self._names):
                self._take(record, curves)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            self.bad_lines += 1

    def _take(self, record: Any, curves: _Curves) -> None:
        """Add the points of a record, whose fields may have any type."""
        if not isinstance(record.name, str) or not isinstance(record.labels, Mapping) or not isfinite(record.t):
            raise TypeError
        labels = tuple(sorted((str(name), str(value)) for name, value in record.labels.items()))
        step = record.step if type(record.step) is int and -_MAX_STEP < record.step < _MAX_STEP else NO_STEP
        values = record.value if isinstance(record.value, tuple) else (record.value,)
        for device, value in enumerate(values):
            if value is None:
                continue
            key = CurveKey(record.name, labels, device if isinstance(record.value, tuple) else None)
            unit = record.unit if isinstance(record.unit, str) else ""
            curves.setdefault(key, (unit, PointColumns()))[1].append(record.t, step, value)

    def _text(self, quoted: bytes) -> str:
        if not quoted:
            return ""
        if quoted not in self._texts:
            if len(quoted) > _MAX_CACHED_BYTES:
                return str(json.loads(quoted))
            if len(self._texts) > _MAX_LABELS:
                self._texts.clear()
            self._texts[quoted] = json.loads(quoted)
        return self._texts[quoted]

    def _parsed_labels(self, text: bytes) -> Labels:
        if text not in self._labels:
            if len(self._labels) > _MAX_LABELS:
                self._labels = {b"": ()}
            labels = tuple(sorted((str(name), str(value)) for name, value in json.loads(text).items()))
            if len(text) > _MAX_CACHED_BYTES:
                return labels
            self._labels[text] = labels
        return self._labels[text]
