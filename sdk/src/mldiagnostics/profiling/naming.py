"""What sessions and their files are called, and which steps they cover: decided alike on all hosts, without a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import file_stem, sanitize

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin

_MAX_SESSION_BYTES = 190  # as in `layout`: room for the number of a retry


def called_session(attempt: int, count: int) -> str:
    """Return the session of the `count`-th profile that an attempt asked for without naming it."""
    return f"a{attempt}-n{count}"


def stepped_session(attempt: int, step: int) -> str:
    """Return the session that begins at a step."""
    return f"a{attempt}-s{step}"


def named_session(name: str) -> str:
    """Return the session that the caller named, as a file name."""
    return sanitize(name, max_bytes=_MAX_SESSION_BYTES)


def host_stem(origin: Origin) -> str:
    """Return the name of this process's file: its pod, or elsewhere its host, made unique where several share it.

    A pod's name is its own and its processes have local ranks; elsewhere nothing says that a host has one process only.
    """
    if origin.namespace:
        return file_stem(origin.host, origin.local_rank or None)
    return file_stem(origin.host, origin.rank if origin.world_size > 1 else origin.local_rank or None)


@dataclass(frozen=True, slots=True)
class StepWindow:
    """The steps to record: from `first` until before `last`, and so on again every `every` steps (0: once)."""

    first: int
    last: int
    every: int = 0

    def __contains__(self, step: int) -> bool:
        passed = step - self.first
        return 0 <= (passed % self.every if self.every and passed >= 0 else passed) < self.last - self.first


def window(steps: tuple[int, int] | None, every_n_steps: int | None) -> StepWindow | None:
    """Return what `xprof(steps=…, every_n_steps=…)` means; None without either.

    `every_n_steps` alone records one step at a time, and never step 0, in which programs compile.

    Raises `ConfigurationError` for anything else than two rising steps and a positive interval that has room for them.
    """
    if steps is None and every_n_steps is None:
        return None
    asked = f"steps={steps!r}, every_n_steps={every_n_steps!r}"
    try:
        every = 0 if every_n_steps is None else int(every_n_steps)
        first, last = (every, every + 1) if steps is None else map(int, steps)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{asked}: give two steps, like (10, 13), and a number of steps") from None
    if every < (every_n_steps is not None):
        raise ConfigurationError(f"{asked}: give a positive number of steps between profiles")
    if not 0 <= first < last:
        raise ConfigurationError(f"{asked}: give the first step and the one to stop at, like (10, 13)")
    if every and last - first > every:
        raise ConfigurationError(f"{asked}: the steps to record are more than those between profiles")
    return StepWindow(first, last, every)
