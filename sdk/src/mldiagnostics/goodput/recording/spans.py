"""Blocks of a program whose start and end are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Span:
    """Records the start and end of a block.

    With `whole`, no end is recorded if an exception leaves the block.
    """

    __slots__ = ("_arguments", "_end", "_start", "_whole")

    def __init__(
        self, start: Callable[..., None], end: Callable[..., None], *arguments: object, whole: bool = False
    ) -> None:
        self._start, self._end, self._arguments, self._whole = start, end, arguments, whole

    def __enter__(self) -> None:
        self._start(*self._arguments)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._whole:
            self._end(*self._arguments)
