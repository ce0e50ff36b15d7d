"""Deletions of pods, on which the tokens and runs of their processes are dropped."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Receiver(NamedTuple):
    gone: Callable[[str], None]
    missed: Callable[[], None]


class DeletedPods:
    """Passes deletions from the watch of the pods of runs to the control plane."""

    def __init__(self) -> None:
        self._receivers: list[_Receiver] = []

    @contextmanager
    def passed_to(self, gone: Callable[[str], None], missed: Callable[[], None]) -> Iterator[None]:
        """Pass deletions on in a `with` block.

        Args:
            gone: Receives the uid of each deleted pod.
            missed: Called after a list, because pods may have been deleted while none was watched.
        """
        receiver = _Receiver(gone, missed)
        self._receivers.append(receiver)
        try:
            yield
        finally:
            self._receivers.remove(receiver)

    def gone(self, uid: str) -> None:
        """Pass on that a pod was deleted."""
        for receiver in self._receivers:
            receiver.gone(uid)

    def missed(self) -> None:
        """Pass on that deletions may have been missed."""
        for receiver in self._receivers:
            receiver.missed()
