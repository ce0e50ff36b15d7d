"""A store of an informer that keeps a small value of each object, by namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from mldiagnostics_kube.cache.informer import InformerStore
from mldiagnostics_kube.cache.object_store import key_of
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

T = TypeVar("T")


class ProjectedStore(InformerStore, Generic[T]):
    """Keeps the projection of each object.

    Args:
        project: Returns the value to keep; None keeps nothing.
        scope: The only namespace of the informer that fills it; None for all.
        values: Values by namespace and name, which stores of several informers share.
    """

    left_out = 0

    def __init__(
        self,
        project: Callable[[Mapping[str, Any]], T | None],
        *,
        scope: str | None = None,
        values: dict[str, dict[str, T]] | None = None,
    ) -> None:
        self._project, self._scope = project, scope
        self._namespaces = {} if values is None else values

    def part(self, namespace: str | None) -> Self:
        """Return the part that an informer of one namespace fills; None is the whole."""
        return type(self)(self._project, scope=namespace, values=self._namespaces)

    @property
    def namespaces(self) -> list[str]:
        """Namespaces with objects."""
        return sorted(self._namespaces)

    def of(self, namespace: str) -> Collection[T]:
        """Return the values of a namespace."""
        return tuple(self._namespaces.get(namespace, {}).values())

    @override
    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    @override
    def put(self, item: Mapping[str, Any]) -> None:
        namespace, _, name = key_of(item).partition("/")
        value = self._project(item)
        if value is None:
            self._forget(namespace, name)
        else:
            self._namespaces.setdefault(namespace, {})[name] = value

    @override
    def remove(self, item: Mapping[str, Any]) -> None:
        namespace, _, name = key_of(item).partition("/")
        self._forget(namespace, name)

    @override
    def keep_only(self, keys: set[str]) -> None:
        for namespace, values in list(self._namespaces.items()):
            if self._scope not in (None, namespace):
                continue
            for name in list(values):
                if f"{namespace}/{name}" not in keys:
                    self._forget(namespace, name)

    def _forget(self, namespace: str, name: str) -> None:
        values = self._namespaces.get(namespace, {})
        values.pop(name, None)
        if not values:
            self._namespaces.pop(namespace, None)
