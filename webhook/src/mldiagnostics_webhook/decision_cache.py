"""Cache of decisions: a workload creates hundreds of equal pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics_webhook.limits import DECISIONS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mldiagnostics_api.injection import DecisionKey

    from mldiagnostics_webhook.cache import OwnerContext


@dataclass(frozen=True, slots=True)
class CachedReview:
    """Answer to a review, with the labels to count it and the message to log."""

    patch: str
    """Encoded JSON patch; empty for none."""
    result: str
    reason: str
    message: str
    """Message for the log if the pod is not changed."""
    level: int
    """Level of the message (`logging`)."""
    warning: str = ""
    """Warning for the client; empty for none."""


class DecisionCache:
    """Latest decisions, each valid for one `OwnerContext` object."""

    def __init__(self) -> None:
        self._reviews: dict[tuple[str, OwnerContext, Hashable], CachedReview] = {}

    def get(self, source: str, context: OwnerContext, key: DecisionKey) -> CachedReview | None:
        """Return the decision for an equal pod, or None if there is none for this context."""
        return self._reviews.get((source, context, key.parts))

    def put(self, source: str, context: OwnerContext, key: DecisionKey, review: CachedReview) -> None:
        """Store a decision; the oldest one is dropped if there are too many."""
        if len(self._reviews) >= DECISIONS:
            self._reviews.pop(next(iter(self._reviews)))
        self._reviews[source, context, key.parts] = review
