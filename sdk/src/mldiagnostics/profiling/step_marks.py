"""Marks of the program's steps in traces of JAX, where XProf finds them."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class StepMarks:
    """Marks each step of a run from its start to the start of the next one.

    It does nothing until the program has imported JAX, and ends as soon as the program marks steps itself, by
    `jax.profiler.StepTraceAnnotation`.
    """

    def __init__(self) -> None:
        self._annotation: Any = None
        self._is_tracing: Callable[[], bool] = lambda: True
        self._open: Any = None
        self._is_over = False

    def begin(self, step: int) -> None:
        """Mark the start of a step, which ends the one before."""
        annotation = self._annotation
        if annotation is None:
            if self._is_over or (annotation := self._found()) is None:
                return
        elif self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None
        if self._is_tracing():  # a mark that begins before a trace is not in it
            self._open = annotation("train", _r=1, step_num=step)  # as StepTraceAnnotation does
            self._open.__enter__()

    def end(self) -> None:
        """End the last step, and all marks."""
        self._is_over, self._annotation = True, None
        if (last := self._open) is not None:
            self._open = None
            last.__exit__(None, None, None)

    def _found(self) -> Any:
        """Return the annotation of JAX, and watch for those of the program.

        None if JAX is not imported.
        """
        profiler = sys.modules.get("jax.profiler")
        of_program = getattr(profiler, "StepTraceAnnotation", None)
        if of_program is None:
            return None
        self._annotation = getattr(profiler, "TraceAnnotation", None)
        self._is_tracing = getattr(self._annotation, "is_enabled", self._is_tracing)
        original = of_program.__init__

        @wraps(original)
        def watched(annotation: Any, *arguments: Any, **options: Any) -> None:
            if of_program.__init__ is watched:
                of_program.__init__ = original
            self.end()
            original(annotation, *arguments, **options)

        of_program.__init__ = watched
        return self._annotation
