"""Deletions of pods, on which the tokens and runs of their processes are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class DeletedPods:
    """The store of an informer of pods, which keeps none of them.

    Args:
        gone: Receives the uid of each deleted pod.
        missed: Called after a list, because pods may have been deleted while none was watched.
    """

    def __init__(self, gone: Callable[[str], None], missed: Callable[[], None]) -> None:
        self._gone = gone
        self._missed = missed
        self.left_out = 0

    def __len__(self) -> int:
        return 0

    def put(self, item: Mapping[str, Any]) -> None:
        """Do nothing: only deletions matter."""

    def remove(self, item: Mapping[str, Any]) -> None:
        """Pass on that a pod was deleted."""
        self._gone(item["metadata"]["uid"])

    def keep_only(self, keys: set[str]) -> None:  # noqa: ARG002 - the pods of before are not known
        """Pass on that deletions may have been missed."""
        self._missed()
