"""Verdicts that hold for all pods that are alike: those of one workload come by the hundred, and differ in nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mldiagnostics_api.injection import DecisionKey

    from mldiagnostics_webhook.cache import OwnerContext

_MOST: Final = 512


@dataclass(frozen=True, slots=True)
class CachedReview:
    """What a review is answered, and how that is counted."""

    patch: str
    """As answers carry it; empty for none."""
    result: str
    reason: str
    message: str
    """What is to be logged of a pod that stays as it is."""
    level: int
    """How loud (`logging`)."""


class DecisionCache:
    """The latest verdicts; each holds as long as the cache gives the very same surroundings."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, OwnerContext, Hashable], CachedReview] = {}

    def get(self, seen: str, around: OwnerContext, like: DecisionKey) -> CachedReview | None:
        """Give the verdict on a pod that is like this one; None if there is none, or if it may have changed."""
        return self._verdicts.get((seen, around, like.what))

    def put(self, seen: str, around: OwnerContext, like: DecisionKey, verdict: CachedReview) -> None:
        """Remember a verdict."""
        if len(self._verdicts) >= _MOST:
            self._verdicts.pop(next(iter(self._verdicts)))
        self._verdicts[seen, around, like.what] = verdict
