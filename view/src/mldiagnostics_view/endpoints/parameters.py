"""Parameters of URLs, checked; pure."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, get_args

from mldiagnostics_view.curves.queries import CurveQuery, Grouping
from mldiagnostics_view.curves.rank_columns import RankQuery
from mldiagnostics_view.curves.windows import Axis
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import MAX_BUCKETS, MAX_LISTED_REPORTS, MAX_QUERIED_METRICS, MAX_X

if TYPE_CHECKING:
    from collections.abc import Collection


_DEFAULT_BUCKETS: Final = 600
_DEFAULT_COLUMNS: Final = 120
_SHOWN: Final = 40
"""Characters of a value in a message."""
_KNOWN: Final = frozenset({"metric", "axis", "from", "to", "buckets", "by"})

T = TypeVar("T", bound=str)


class Parameters(Protocol):
    """Names and values of a query, in which a name can stand several times."""

    def getall(self, key: str, default: list[str], /) -> list[str]:
        """Return all values of a name."""

    def keys(self) -> Collection[str]:
        """Return the names."""


def curve_query(parameters: Parameters) -> CurveQuery:
    """Return the query of a request for curves. Raises `RequestProblem`."""
    _reject_unknown(parameters, _KNOWN)
    metrics = tuple(dict.fromkeys(parameters.getall("metric", [])))
    if not 0 < len(metrics) <= MAX_QUERIED_METRICS:
        raise _bad(f"metric: {len(metrics)} are given; pass 1 to {MAX_QUERIED_METRICS}")
    start, end = _number(parameters, "from"), _number(parameters, "to")
    if start is not None and end is not None and start > end:
        raise _bad(f"from: {start:g} is after to, {end:g}; swap them")
    buckets = _count(parameters, "buckets", _DEFAULT_BUCKETS)
    axis: Axis = _choice(parameters, "axis", get_args(Axis))
    by: Grouping = _choice(parameters, "by", get_args(Grouping))
    return CurveQuery(metrics=metrics, axis=axis, start=start, end=end, buckets=buckets, by=by)


def metric_search(parameters: Parameters) -> str:
    """Return the words that the names of listed metrics have. Raises `RequestProblem`."""
    _reject_unknown(parameters, frozenset({"q"}))
    return _one(parameters, "q") or ""


def rank_query(parameters: Parameters) -> RankQuery:
    """Return the query of a request for values by rank. Raises `RequestProblem`."""
    _reject_unknown(parameters, frozenset({"metric", "columns"}))
    return RankQuery(_one(parameters, "metric"), _count(parameters, "columns", _DEFAULT_COLUMNS))


def _reject_unknown(parameters: Parameters, known: frozenset[str]) -> None:
    if unknown := sorted(set(parameters.keys()) - known):
        raise _bad(f"{unknown[0][:_SHOWN]}: not a parameter; use {', '.join(sorted(known))}")


def _count(parameters: Parameters, name: str, default: int) -> int:
    count = _number(parameters, name)
    if count is not None and not (1 <= count <= MAX_BUCKETS and count == int(count)):
        raise _bad(f"{name}: {count:g} is not a whole number from 1 to {MAX_BUCKETS}")
    return default if count is None else int(count)


def run_names(parameters: Parameters) -> list[str]:
    """Return the runs of a request as `source/key`, each once.

    Raises `RequestProblem`.
    """
    _reject_unknown(parameters, frozenset({"run"}))
    names = list(dict.fromkeys(parameters.getall("run", [])))
    if not 0 < len(names) <= MAX_LISTED_REPORTS:
        raise _bad(f"run: {len(names)} are given; pass 1 to {MAX_LISTED_REPORTS}")
    return names


def _one(parameters: Parameters, name: str) -> str | None:
    values = parameters.getall(name, [])
    if len(values) > 1:
        raise _bad(f"{name}: is given {len(values)} times; pass it once")
    return values[0] if values else None


def _number(parameters: Parameters, name: str) -> float | None:
    text = _one(parameters, name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) <= MAX_X:
        raise _bad(f"{name}: '{text[:_SHOWN]}' is not a number from -{MAX_X:g} to {MAX_X:g}")
    return number


def _choice(parameters: Parameters, name: str, choices: tuple[T, ...]) -> T:
    text = _one(parameters, name)
    for choice in choices:
        if text in (None, choice):
            return choice
    raise _bad(f"{name}: '{(text or '')[:_SHOWN]}' is not known; use {', '.join(choices)}")


def _bad(detail: str) -> RequestProblem:
    return RequestProblem(HTTPStatus.BAD_REQUEST, detail)
