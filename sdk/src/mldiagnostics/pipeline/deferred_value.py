"""Values that are read later, and whether reading them would wait for a device."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.pipeline.records import Value

_DELETED_OR_READY = methodcaller("is_deleted"), methodcaller("is_ready")


class DeferredValue:
    """A number or series that `read()` returns later.

    Args:
        source: Argument of the two functions.
        read: Returns the value; it raises `Unrecordable` or errors of the framework.
        is_ready: Whether `read` returns at once. Default: not known, `read` may wait for a device.
    """

    __slots__ = ("_is_ready", "_read", "_source")

    def __init__(
        self, source: Any, read: Callable[[Any], Value], is_ready: Callable[[Any], bool] | None = None
    ) -> None:
        self._source = source
        self._read = read
        self._is_ready = is_ready

    @property
    def can_wait(self) -> bool:
        """Whether `read` may wait for a device even if `is_ready` returns True."""
        return self._is_ready is None

    def is_ready(self) -> bool:
        """Return False if `read` would wait for a device; True if that is not known."""
        try:
            return self._is_ready is None or bool(self._is_ready(self._source))
        except Exception:  # noqa: BLE001 - a framework may raise anything, and `read` reports it
            return True

    def read(self) -> Value:
        """Return the value, which may wait for a device."""
        return self._read(self._source)


def is_ready(kept: object) -> bool:
    """Return False if reading a kept value would wait; True if that is not known."""
    if isinstance(kept, DeferredValue):
        return kept.is_ready()
    return not isinstance(kept, tuple) or all(map(is_ready, kept))


def can_wait(kept: object) -> bool:
    """Return whether reading a kept value may wait even if `is_ready` returns True."""
    if isinstance(kept, DeferredValue):
        return kept.can_wait
    return isinstance(kept, tuple) and any(map(can_wait, kept))


def is_jax_ready(array: Any) -> bool:
    """Return whether an array is ready or deleted.

    `is_ready` of a deleted array ends the process (JAX 0.10). So no bytecode, at which another thread could delete the
    array, runs between the two calls.
    """
    return any(map(methodcaller("__call__", array), _DELETED_OR_READY))
