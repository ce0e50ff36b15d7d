"""One thing that happened in a run, and its line in a file.

A line is one JSON object: `v` (1), `kind`, `t` (Unix seconds), `name`, `rank`, `attempt` always, and `value`, `values`,
`step`, `labels`, `unit`, `payload` where there is something to say. A number is `value` and a series with one number
per device is `values`, so that each column has one type for pandas and DuckDB. A number that JSON cannot say is null
there, and `nonfinite` names it: `"value":null,"nonfinite":"NaN"`, or in order and separated by commas for a series:
`"values":[1.0,null,null],"nonfinite":"Infinity,NaN"`. In a payload its name stands in its place.
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import isfinite, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, get_args

from mldiagnostics.text.strict_json import dumps, spelled

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
        line += f',"payload":{dumps(payload)}'
    return line + "}\n"


def encode_head(record: Record) -> str:
    """Return the line as `encode` does, with `nonfinite` in it: DuckDB knows only the columns of the first lines."""
    return f'{encode(record)[:-2]},"nonfinite":""}}\n'


def decode(line: str | bytes) -> Record:
    """Return the record of a line; keys that a later version may add are passed over.

    Raises `ValueError` if the line is none: cut off, no JSON, of another schema, or without what every record has.
    """
    found = json.loads(line)
    try:
        _require_known(found["v"], found["kind"])
        value = _value(found.get("value"), found.get("values"), found.get("nonfinite") or "")
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


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)
