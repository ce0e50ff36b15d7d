"""One record of a run, and its line in a file.

A line is one JSON object: `v` (1), `kind`, `t` (Unix seconds), `name`, `rank`, `attempt` always, and `value`, `values`,
`step`, `labels`, `unit`, `payload` if they are not empty. A number is `value` and a series with one number per device
is `values`, so that each column has one type for pandas and DuckDB. A number that JSON cannot represent is null, and
`nonfinite` has its name: `"value":null,"nonfinite":"NaN"`, or in order and separated by commas for a series:
`"values":[1.0,null,null],"nonfinite":"Infinity,NaN"`. A payload has the name in place of the number.
"""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from math import isfinite, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, get_args

from mldiagnostics.text.strict_json import dumps, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

Kind: TypeAlias = Literal["metric", "event", "config", "phase", "heartbeat", "drop", "session"]
"""Kind of a record: a measured number, an event, a configuration, a phase of the run, a heartbeat, dropped records, a
profile session."""

KINDS: frozenset[str] = frozenset(get_args(Kind))

GOODPUT = "goodput"
"""Name of the events from which goodput is computed."""

ON_DEMAND = "on-demand"
"""Name of the session record of the profiler server."""

SEGMENT_HEAD = "segment"
"""Name of the first event of each file of records, which describes the process."""

Value: TypeAlias = float | tuple[float, ...] | None
"""A number, a series with one number per device, or None for a record with only a payload."""

NO_LABELS: Mapping[str, str] = MappingProxyType({})


class Record(NamedTuple):
    """One record; `t` is Unix time in seconds, `payload` is made of JSON's types only."""

    kind: Kind
    t: float
    name: str
    value: Value = None
    step: int | None = None
    labels: Mapping[str, str] = NO_LABELS
    rank: int = 0
    attempt: int = 0
    unit: str = ""
    payload: Mapping[str, object] | None = None


def is_goodput(record: Record) -> bool:
    """Return whether a record is an input of goodput.

    Only record files contain those, one per step.
    """
    return record.name == GOODPUT and record.kind == "event"


def encode(record: Record) -> str:
    """Return the record's line, ASCII only, with the line break."""
    kind, t, name, value, step, labels, rank, attempt, unit, payload = record
    if type(value) is float and step is not None and not labels and payload is None and isfinite(value) and isfinite(t):
        start, middle, end = _frame(kind, name, rank, attempt, unit)  # of almost all records
        return f'{start}{t!r}{middle}{value!r},"step":{step}{end}'
    line = f'{{"v":{SCHEMA_VERSION},"kind":"{kind}","t":{_number(t)},"name":{_quoted(name)}'
    line += f',"rank":{rank},"attempt":{attempt}'
    if type(value) is float:
        line += f',"value":{_number(value)}' if isfinite(value) else f',"value":null,"nonfinite":"{spelled(value)}"'
    elif value is not None:
        line += _series(cast("tuple[float, ...]", value))
    if step is not None:
        line += f',"step":{step}'
    if labels:
        line += f',"labels":{dumps(dict(labels))}'
    if unit:
        line += f',"unit":{_quoted(unit)}'
    if payload is not None:
        line += f',"payload":{_flat(payload) or dumps(payload)}'
    return line + "}\n"


def encode_head(record: Record) -> str:
    """Return the line with an empty `nonfinite`.

    DuckDB takes the columns from the first lines.
    """
    return f'{encode(record)[:-2]},"nonfinite":""}}\n'


def decode(line: str | bytes) -> Record:
    """Return the record of a line; keys of later versions are ignored.

    Raises:
        ValueError: the line is incomplete, not JSON, of another schema, or lacks a required key.
    """
    try:
        document = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"nested too deeply: {line[:200]!r}") from error
    try:
        _require_known(document["v"], document["kind"])
        value = _value(document.get("value"), document.get("values"), document.get("nonfinite") or "")
        record = Record(
            kind=document["kind"],
            t=float(document["t"]),
            name=document["name"],
            value=value,
            step=document.get("step"),
            labels=document.get("labels") or NO_LABELS,
            rank=document["rank"],
            attempt=document["attempt"],
            unit=document.get("unit") or "",
            payload=document.get("payload"),
        )
        _require_types(record)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"not a record of schema {SCHEMA_VERSION}: {error!r} in {line[:200]!r}") from error
    return record


def _require_types(record: Record) -> None:
    """Raise `TypeError` for a field that readers cannot use.

    Other programs may write the file too.
    """
    is_valid = (
        type(record.rank) is int
        and type(record.attempt) is int
        and type(record.name) is str
        and type(record.unit) is str
        and (record.step is None or type(record.step) is int)
        and (record.labels is NO_LABELS or type(record.labels) is dict)
        and (record.payload is None or type(record.payload) is dict)
        and isfinite(record.t)
    )
    if not is_valid:
        raise TypeError("a field of another type")


def _require_known(version: object, kind: object) -> None:
    if version != SCHEMA_VERSION or kind not in KINDS:
        raise ValueError(f"version {version!r}, kind {kind!r}")


def _value(number: float | None, series: list[float | None] | None, nonfinite: str) -> Value:
    if series is not None:
        named = iter(nonfinite.split(",") if nonfinite else ())
        return tuple([float(next(named, nan) if each is None else each) for each in series])
    if number is None:
        return float(nonfinite) if nonfinite else None
    return float(number)


def _number(value: float) -> str:
    return repr(value) if isfinite(value) else "null"


def _series(values: tuple[float, ...]) -> str:
    column = f',"values":[{",".join(map(_number, values))}]'
    named = ",".join([spelled(value) for value in values if not isfinite(value)])
    return f'{column},"nonfinite":"{named}"' if named else column


def _flat(payload: Mapping[str, object]) -> str:
    """Return a payload as JSON, faster than `dumps`.

    The string is empty if a value is neither a string nor a finite number.
    """
    parts = []
    for key, value in payload.items():
        kind = type(value)
        if kind is str:
            parts.append(f"{_quoted(key)}:{encode_basestring_ascii(cast('str', value))}")
        elif kind is int or (kind is float and isfinite(cast("float", value))):
            parts.append(f"{_quoted(key)}:{value!r}")
        else:
            return ""
    return f"{{{','.join(parts)}}}"


@lru_cache(maxsize=1024)
def _frame(kind: Kind, name: str, rank: int, attempt: int, unit: str) -> tuple[str, str, str]:
    """Return the parts of a metric's line around its time, its value and its step."""
    return (
        f'{{"v":{SCHEMA_VERSION},"kind":"{kind}","t":',
        f',"name":{_quoted(name)},"rank":{rank},"attempt":{attempt},"value":',
        f',"unit":{_quoted(unit)}}}\n' if unit else "}\n",
    )


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)
