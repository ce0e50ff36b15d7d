"""The lock that several threads with one calculator share."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def serialized(
    query: Callable[Concatenate[Any, _Parameters], _Result],
) -> Callable[Concatenate[Any, _Parameters], _Result]:
    """Return a query that holds the calculator's lock while it runs."""

    @wraps(query)
    def locked(self: Any, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with self._lock:
            return query(self, *args, **kwargs)

    return locked
