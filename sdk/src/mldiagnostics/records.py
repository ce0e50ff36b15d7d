"""One thing that happened in a run, and its line in a file.

A line is one JSON object: `v` (1), `kind`, `t` (Unix seconds), `name`, `rank`, `attempt` always, and `value`, `values`,
`step`, `labels`, `unit`, `payload` where there is something to say. A number is `value` and a series with one number
per device is `values`, so that each column has one type for pandas and DuckDB. NaN and infinities are written `NaN`,
`Infinity` and `-Infinity`, as both of them and Python read them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

Kind: TypeAlias = Literal["metric", "event", "config", "phase", "heartbeat", "drop", "session"]
"""What a record is about: a measured number, something that happened, a setting, the phase of the run, a sign of
life, records that were dropped, a profile session."""

KINDS: frozenset[str] = frozenset(get_args(Kind))

GOODPUT = "goodput"
"""Name of the events that goodput is computed from."""

Value: TypeAlias = float | tuple[float, ...] | None
"""A number, a series with one number per device, or nothing (what is said stands in `payload` then)."""

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_INFINITY = float("inf")
_compact = json.JSONEncoder(separators=(",", ":")).encode


class Record(NamedTuple):
    """One record; `t` is Unix time in seconds, `payload` is made of JSON's types only."""

    kind: Kind
    t: float
    name: str
    value: Value = None
    step: int | None = None
    labels: Mapping[str, str] = _NO_LABELS
    rank: int = 0
    attempt: int = 0
    unit: str = ""
    payload: Mapping[str, object] | None = None


def is_goodput(record: Record) -> bool:
    """Tell whether a record is for the computing of goodput, of which there is one with each step, and not for people.

    Only files of records get those.
    """
    return record.name == GOODPUT and record.kind == "event"


def encode(record: Record) -> str:
    """Return the record's line, ASCII only, with the line break."""
    kind, t, name, value, step, labels, rank, attempt, unit, payload = record
    line = f'{{"v":{SCHEMA_VERSION},"kind":"{kind}","t":{_number(t)},"name":{_quoted(name)}'
    line += f',"rank":{rank},"attempt":{attempt}'
    if type(value) is float:
        line += f',"value":{_number(value)}'
    elif value is not None:
        line += f',"values":[{",".join(map(_number, cast("tuple[float, ...]", value)))}]'
    if step is not None:
        line += f',"step":{step}'
    if labels:
        line += f',"labels":{_compact(dict(labels))}'
    if unit:
        line += f',"unit":{_quoted(unit)}'
    if payload is not None:
        line += f',"payload":{_compact(payload)}'
    return line + "}\n"


def decode(line: str | bytes) -> Record:
    """Return the record of a line; keys that a later version may add are passed over.

    Raises `ValueError` if the line is none: cut off, no JSON, of another schema, or without what every record has.
    """
    found = json.loads(line)
    try:
        _require_known(found["v"], found["kind"])
        value = _value(found.get("value"), found.get("values"))
        return Record(
            kind=found["kind"],
            t=float(found["t"]),
            name=found["name"],
            value=value,
            step=found.get("step"),
            labels=found.get("labels") or _NO_LABELS,
            rank=found["rank"],
            attempt=found["attempt"],
            unit=found.get("unit") or "",
            payload=found.get("payload"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no record of schema {SCHEMA_VERSION}: {error!r} in {line[:200]!r}") from error


def _require_known(version: object, kind: object) -> None:
    if version != SCHEMA_VERSION or kind not in KINDS:
        raise ValueError(f"version {version!r}, kind {kind!r}")


def _value(number: float | None, series: list[float] | None) -> Value:
    if series is not None:
        return tuple(map(float, series))
    return None if number is None else float(number)


def _number(value: float) -> str:
    if -_INFINITY < value < _INFINITY:
        return repr(value)
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124 - only NaN differs


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)
