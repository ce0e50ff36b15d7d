"""The stores of watched workloads and namespaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, OPT_IN_LABEL, RUN_CREATED_ANNOTATION
from mldiagnostics_kube.cache.object_store import key_of

from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload, observe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.workloads.kinds import WorkloadKind

MAX_WORKLOADS: Final = 20_000
"""Observed workloads of each watch; one takes about 1.5 KiB."""

Changed = Callable[[ObservedWorkload, bool], None]
"""Accepts a workload, and whether it left its watch: it was deleted, or its label was removed."""


class WorkloadStore:
    """Keeps what runs need of the workloads of one watch, and reports every change."""

    def __init__(self, kind: WorkloadKind, changed: Changed) -> None:
        self._kind = kind
        self._changed = changed
        self._items: dict[str, ObservedWorkload] = {}
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, namespace: str, name: str) -> ObservedWorkload | None:
        """Return a workload as the watch delivered it last; None if it does not."""
        return self._items.get(f"{namespace}/{name}")

    def put(self, item: Mapping[str, Any]) -> None:
        """Reduce and keep an object; report it if one of the kept parts changed."""
        key = key_of(item)
        observed = observe(self._kind, item, annotations=(RUN_CREATED_ANNOTATION,))
        before = self._items.get(key)
        if before is None and len(self._items) >= MAX_WORKLOADS:
            self.left_out += 1
            return
        self._items[key] = observed
        if before is not None and before.uid != observed.uid:
            self._changed(before, True)  # noqa: FBT003 - the second of two arguments
        if before != observed:
            self._changed(observed, False)  # noqa: FBT003 - the second of two arguments

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget an object and report it."""
        self._forget(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        """Forget all objects but these, and report them."""
        for key in self._items.keys() - keys:
            self._forget(key)

    def report_all(self) -> None:
        """Report every kept workload again, because labels of its namespace changed."""
        for observed in self._items.values():
            self._changed(observed, False)  # noqa: FBT003 - the second of two arguments

    def _forget(self, key: str) -> None:
        observed = self._items.pop(key, None)
        if observed is not None:
            self._changed(observed, True)  # noqa: FBT003 - the second of two arguments


@dataclass
class NamespaceLabels:
    """The labels of the labelled namespaces, by name."""

    changed: Callable[[], None]
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def put(self, item: Mapping[str, Any]) -> None:
        """Keep the labels of a namespace."""
        labels = item["metadata"].get("labels") or {}
        kept = {key: labels[key] for key in (OPT_IN_LABEL, EXEMPT_NAMESPACE_LABEL) if key in labels}
        name = item["metadata"]["name"]
        if self.labels.get(name) != kept:
            self.labels[name] = kept
            self.changed()

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget a namespace."""
        if self.labels.pop(item["metadata"]["name"], None) is not None:
            self.changed()

    def keep_only(self, keys: set[str]) -> None:
        """Forget all namespaces but these."""
        gone = self.labels.keys() - {key.partition("/")[2] for key in keys}
        for name in gone:
            del self.labels[name]
        if gone:
            self.changed()
