"""Verdicts that hold for all pods that are alike: those of one workload come by the hundred, and differ in nothing."""

from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.injection import Likeness

from mldiagnostics_webhook.cache import Surroundings

_MOST: Final = 512


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a review is answered, and how that is counted."""

    patch: str
    """As answers carry it; empty for none."""
    result: str
    reason: str
    message: str
    """What is to be logged of a pod that stays as it is."""
    level: int
    """How loud (`logging`)."""


class Remembered:
    """The latest verdicts; each holds as long as the cache gives the same surroundings again."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, Likeness], tuple[Surroundings, Verdict]] = {}

    def get(self, seen: str, like: Likeness, around: Surroundings) -> Verdict | None:
        """Give the verdict on a pod that is like this one; None if there is none, or if it may have changed."""
        then, verdict = self._verdicts.get((seen, like), (None, None))
        return verdict if then is around else None

    def put(self, seen: str, like: Likeness, around: Surroundings, verdict: Verdict) -> None:
        """Remember a verdict."""
        if len(self._verdicts) >= _MOST:
            self._verdicts.pop(next(iter(self._verdicts)))
        self._verdicts[seen, like] = around, verdict
