"""A dictionary with attribute access that reports changes of itself and its parts."""

# typing.override is newer than Python 3.10
# mypy: disable-error-code="explicit-override"

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MAX_DEPTH = 32


class ConfigDict(dict[str, Any]):
    """A dictionary whose keys are also attributes.

    Dictionaries in it become `ConfigDict` too.

    Args:
        values: Initial content.
        on_change: Called after every change here or below; must not raise.
        inside: Ids of the dictionaries around this one: a dictionary that contains itself, or is nested deeper than
            configurations are recorded, is kept unchanged.
    """

    __slots__ = ("_on_change",)

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        on_change: Callable[[], None] | None = None,
        inside: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__()
        object.__setattr__(self, "_on_change", on_change)
        for key, value in (values or {}).items():
            super().__setitem__(key, self._watched(value, inside))

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, self._watched(value))
        self._changed()

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._changed()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"configs has no {name!r}; its keys are {', '.join(map(str, self))}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"configs has no {name!r}") from None

    def __ior__(self, other: Any) -> ConfigDict:  # type: ignore[override,misc] # noqa: PYI034 - Self is newer than Python 3.10
        self.update(other)
        return self

    def __reduce__(self) -> tuple[type[ConfigDict], tuple[dict[str, Any]]]:  # copies and pickles report nothing
        return ConfigDict, (dict(self),)

    def update(self, *args: Mapping[str, Any] | Iterable[tuple[str, Any]], **kwargs: Any) -> None:  # type: ignore[override]
        """Set all values as one change.

        An argument that is not a dictionary is reported and ignored.
        """
        try:
            values = dict(*args, **kwargs)
        except (TypeError, ValueError) as error:
            warn_once("configs", f"configs.update() was called without a dictionary and is ignored: {error}")
            return
        for key, value in values.items():
            super().__setitem__(key, self._watched(value))
        self._changed()

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, set to `default` if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        """Remove `key` and return its value, or `default` if there is none."""
        value = super().pop(key, *default)
        self._changed()
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last key and value."""
        item = super().popitem()
        self._changed()
        return item

    def clear(self) -> None:
        """Remove everything."""
        super().clear()
        self._changed()

    def _watched(self, value: Any, inside: frozenset[int] = frozenset()) -> Any:
        if not isinstance(value, Mapping) or id(value) in inside or len(inside) >= _MAX_DEPTH:
            return value
        return ConfigDict(value, on_change=self._changed, inside=inside | {id(value)})

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()
