"""Names of sessions and files, and their steps: the same on all hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import MAX_SESSION_BYTES, file_stem, sanitize

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin


def numbered_session(attempt: int, count: int) -> str:
    """Return the name of an attempt's `count`-th unnamed session."""
    return f"a{attempt}-n{count}"


def step_session(attempt: int, step: int) -> str:
    """Return the name of the session that starts at a step."""
    return f"a{attempt}-s{step}"


def named_session(name: str) -> str:
    """Return the caller's name of a session as a file name."""
    return sanitize(name, max_bytes=MAX_SESSION_BYTES)


def host_stem(origin: Origin) -> str:
    """Return the name of this process's file: its pod or host, made unique.

    Processes of a pod differ by their local rank. Elsewhere several processes may share a host, so the rank is added.
    """
    if origin.namespace:
        return file_stem(origin.host, origin.local_rank or None)
    return file_stem(origin.host, origin.rank if origin.world_size > 1 else origin.local_rank or None)


@dataclass(frozen=True, slots=True)
class StepWindow:
    """The steps to record: `first` ≤ step < `last`, every `every` steps (0: once)."""

    first: int
    last: int
    every: int = 0

    def __contains__(self, step: int) -> bool:
        passed = step - self.first
        return 0 <= (passed % self.every if self.every and passed >= 0 else passed) < self.last - self.first


def window(steps: tuple[int, int] | None, every_n_steps: int | None) -> StepWindow | None:
    """Return the window of `xprof(steps=…, every_n_steps=…)`; None without either.

    `every_n_steps` alone records one step at a time, and never step 0, in which programs compile.

    Raises `ConfigurationError` unless these are two increasing steps and a positive interval that is not shorter.
    """
    if steps is None and every_n_steps is None:
        return None
    given = f"steps={steps!r}, every_n_steps={every_n_steps!r}"
    try:
        every = 0 if every_n_steps is None else int(every_n_steps)
        first, last = (every, every + 1) if steps is None else map(int, steps)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{given}: not integers; pass two steps, like (10, 13), and a number") from None
    if every < (every_n_steps is not None):
        raise ConfigurationError(
            f"{given}: every_n_steps is not positive; pass the number of steps between two profiles"
        )
    if not 0 <= first < last:
        raise ConfigurationError(
            f"{given}: steps do not increase; pass the first and the one to stop at, like (10, 13)"
        )
    if every and last - first > every:
        raise ConfigurationError(f"{given}: more steps than every_n_steps; record fewer or profile less often")
    return StepWindow(first, last, every)
