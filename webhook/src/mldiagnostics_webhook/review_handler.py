"""From the bytes of a review to the bytes of its answer: whatever happens on the way, the pod is allowed."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from mldiagnostics_api.injection import (
    DecisionKey,
    Injection,
    InjectionReason,
    InjectionSettings,
    NotInjected,
    OwnersUnknown,
    controller_of,
    decide,
    likeness_of,
    patch,
)
from mldiagnostics_api.matching import MatchReason
from mldiagnostics_api.names import OPT_IN_LABEL

from mldiagnostics_webhook.cache import MetadataCache, OwnerContext
from mldiagnostics_webhook.decision_cache import CachedReview, DecisionCache
from mldiagnostics_webhook.review import OtherReview, Review, Unreadable, encoded, permission, read
from mldiagnostics_webhook.telemetry import WebhookMetrics

_log: Final = logging.getLogger(__name__)

INTERNAL_ERROR: Final = "InternalError"
# Larger pods are decided each by itself: what would have to be remembered of them is anybody's to choose.
_ALIKE_BYTES: Final = 32 * 1024
_INJECTED: Final = "Injected"


class LabelSource(StrEnum):
    """Where the API server has seen the opt-in label before it called; each has a path of its own."""

    NAMESPACE = "namespace"
    WORKLOAD = "workload"
    """Perhaps on the pod or its workload: nothing is known of it yet."""


class ReviewResult(StrEnum):
    """What became of a review."""

    INJECTED = "injected"
    SKIPPED = "skipped"
    FAILED = "failed"
    """Not injected through a fault of ours or of the cluster."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """An answer over HTTP."""

    status: int
    body: bytes


def _now() -> datetime:
    return datetime.now(UTC)


class ReviewHandler:
    """Answers reviews with the settings of one cluster."""

    def __init__(
        self,
        cache: MetadataCache,
        settings: InjectionSettings,
        telemetry: WebhookMetrics,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._cache = cache
        self._settings = settings
        self._telemetry = telemetry
        self._clock = clock
        self._remembered = DecisionCache()

    async def answer(self, seen: LabelSource, body: bytes, *, within_s: float) -> ReviewResponse:
        """Answer a review; lookups take no longer than `within_s`. A dry run is answered as any other."""
        uid = ""
        try:
            review = read(body)
            uid = review.uid
            if isinstance(review, Review):
                alike = len(body) <= _ALIKE_BYTES
                return ReviewResponse(200, await self._decided(seen, review, within_s, alike=alike))
            return self._not_a_pod(review)
        except Exception:  # noqa: BLE001 - no fault of ours may keep a pod from starting
            _log.exception("Review %s could not be answered, its pod stays as it is", uid or "without uid")
            self._telemetry.reviewed(result=ReviewResult.FAILED, reason=INTERNAL_ERROR)
            warning = "mldiagnostics: the pod was not told of its run, the webhook failed: see its log"
            return ReviewResponse(200, permission(uid, warning=warning)) if uid else ReviewResponse(400, b"")

    def _not_a_pod(self, review: OtherReview | Unreadable) -> ReviewResponse:
        if isinstance(review, OtherReview):
            self._telemetry.reviewed(result=ReviewResult.SKIPPED, reason="NotPodCreation")
            _log.warning("Called for what is not the creation of a pod, check the configuration: %s", review.about)
            return ReviewResponse(200, permission(review.uid))
        self._telemetry.reviewed(result=ReviewResult.UNREADABLE, reason="UnreadableReview")
        _log.warning("A request could not be read: %s", review.why)
        return ReviewResponse(200, permission(review.uid)) if review.uid else ReviewResponse(400, review.why.encode())

    async def _decided(self, seen: LabelSource, review: Review, within_s: float, *, alike: bool) -> bytes:
        like = likeness_of(review.pod, review.namespace) if alike else None
        controller = like.controller if like else controller_of(review.pod, review.namespace)
        around = await self._cache.surroundings(review.namespace, controller, within_s=within_s)
        verdict = self._verdict_on(seen, review, like, around)
        self._telemetry.reviewed(result=verdict.result, reason=verdict.reason)
        if verdict.reason != _INJECTED:
            whose = f"of {controller.kind} {controller.name}" if controller else "without controller"
            _log.log(
                verdict.level, "A pod %s in %s is not told of its run: %s", whose, review.namespace, verdict.message
            )
        return permission(review.uid, verdict.patch)

    def _verdict_on(
        self, seen: LabelSource, review: Review, like: DecisionKey | None, around: OwnerContext | OwnersUnknown
    ) -> CachedReview:
        """Decide, unless that has been done for a pod like this one."""
        if like is None or isinstance(around, OwnersUnknown) or not around.sights:
            return self._verdict(seen, review, around)
        verdict = self._remembered.get(seen, around, like)
        if verdict is None:
            verdict = self._verdict(seen, review, around)
            self._remembered.put(seen, around, like, verdict)
        return verdict

    def _verdict(self, seen: LabelSource, review: Review, around: OwnerContext | OwnersUnknown) -> CachedReview:
        decision = self._decide(seen, review, around)
        operations = patch(review.pod, decision) if isinstance(review.pod, dict) else ()
        if isinstance(decision, Injection):
            return CachedReview(encoded(operations), ReviewResult.INJECTED, _INJECTED, decision.message, logging.DEBUG)
        result = ReviewResult.FAILED if decision.reason is InjectionReason.OWNERS_UNKNOWN else ReviewResult.SKIPPED
        return CachedReview(encoded(operations), result, decision.reason, decision.message, _level(decision))

    def _decide(
        self, seen: LabelSource, review: Review, around: OwnerContext | OwnersUnknown
    ) -> Injection | NotInjected:
        if isinstance(around, OwnersUnknown):
            unknown = OwnersUnknown(f"the namespace {review.namespace} is not known: {around.message}")
            around = OwnerContext({"metadata": {}}, unknown, ())
        namespace = around.namespace["metadata"]
        labels = namespace.get("labels") or {}
        return decide(
            review.pod,
            namespace=review.namespace,
            namespace_labels=labels | {OPT_IN_LABEL: "true"} if seen is LabelSource.NAMESPACE else labels,
            namespace_annotations=namespace.get("annotations") or {},
            owners=around.owners,
            settings=self._settings,
            now=self._clock(),
        )


def _level(decision: NotInjected) -> int:
    """Say how loudly it is told: a fault or mistake, what is usual in a labelled namespace, or what nobody wants."""
    if decision.reason is MatchReason.KIND_NEEDS_OWN_LABEL:
        return logging.INFO
    return logging.WARNING if decision.asked or decision.reason is InjectionReason.OWNERS_UNKNOWN else logging.DEBUG
