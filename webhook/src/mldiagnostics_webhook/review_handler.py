"""Answers to reviews: a patch or none, and always permission."""

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from mldiagnostics_api.injection import (
    DecisionKey,
    Injection,
    InjectionReason,
    InjectionSettings,
    NotInjected,
    OwnersUnknown,
    controller_of,
    decide,
    decision_key,
    patch,
)
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.publication import Publication
from mldiagnostics_api.workloads.matching import MatchReason
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_kube.process.clock import Clock, utc_now

from mldiagnostics_webhook.cache import MetadataCache, OwnerContext
from mldiagnostics_webhook.decision_cache import CachedReview, DecisionCache
from mldiagnostics_webhook.review import OtherReview, Review, Unreadable, encoded, permission, read
from mldiagnostics_webhook.telemetry import WebhookMetrics

_log: Final = logging.getLogger(__name__)

INTERNAL_ERROR: Final = "InternalError"
# Decisions on larger reviews are not cached: users control the size of the cached keys.
_CACHEABLE_BYTES: Final = 32 * 1024
_INJECTED: Final = "Injected"


class LabelSource(StrEnum):
    """Place where the API server matched the opt-in label; each has its own path."""

    NAMESPACE = "namespace"
    WORKLOAD = "workload"
    """The pod or its workload may have the label: the API server has not checked."""


class ReviewResult(StrEnum):
    """Result of a review, as counted in the metrics."""

    INJECTED = "injected"
    SKIPPED = "skipped"
    FAILED = "failed"
    """Not injected because of a fault in the webhook or in the cluster."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """Status and body of an HTTP response."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PodCreation:
    """A review of a new pod, with the parts of it that are read once."""

    source: LabelSource
    """Place where the API server matched the opt-in label."""
    review: Review
    size: int
    """Bytes of the review."""
    key: DecisionKey | None
    """None if the decision must not be cached."""
    controller: ObjectReference | None

    @classmethod
    def of(cls, source: LabelSource, review: Review, size: int) -> Self:
        """Read the owner reference of a pod, and the parts that its decision depends on."""
        key = decision_key(review.pod, review.namespace) if size <= _CACHEABLE_BYTES else None
        controller = key.controller if key else controller_of(review.pod, review.namespace)
        return cls(source, review, size, key, controller)


class ReviewHandler:
    """Answers reviews with the settings of one cluster and its control plane."""

    def __init__(
        self,
        cache: MetadataCache,
        settings: InjectionSettings,
        telemetry: WebhookMetrics,
        clock: Clock = utc_now,
    ) -> None:
        self._cache = cache
        self._settings = settings
        self._telemetry = telemetry
        self._clock = clock
        self._decisions = DecisionCache()
        self._publication: Publication | None = None

    def use(self, publication: Publication | None) -> None:
        """Give the next pods access to a published control plane, or to none."""
        self._publication = publication
        self._decisions = DecisionCache()  # the cached ones name another

    async def answer(self, source: LabelSource, body: bytes, *, within_s: float) -> ReviewResponse:
        """Answer a review; a dry run gets the same answer.

        Args:
            source: Place where the API server matched the opt-in label.
            body: The request's body, from any client.
            within_s: Longest time for lookups in seconds.
        """
        uid = ""
        try:
            review = read(body)
            uid = review.uid
            if not isinstance(review, Review):
                return self._answer_other(review)
            creation = PodCreation.of(source, review, len(body))
            namespace, controller = review.namespace, creation.controller
            context: OwnerContext | OwnersUnknown | None = self._cache.known_context(controller)
            if context is None:
                del review, creation  # parsed, it takes up to fifty times its size, and a lookup may take a second
                context = await self._cache.owner_context(namespace, controller, within_s=within_s)
                creation = PodCreation.of(source, _parsed_again(body), len(body))
            return ReviewResponse(200, self._answer_creation(creation, context))
        except Exception:  # noqa: BLE001 - a fault of the webhook must not keep a pod from starting
            _log.exception("Review %(review)s failed; its pod is created unchanged", {"review": uid or "without uid"})
            self._telemetry.reviewed(result=ReviewResult.FAILED, reason=INTERNAL_ERROR)
            warning = "mldiagnostics: no run was injected into the pod: the webhook failed; see its log"
            return ReviewResponse(200, permission(uid, warning=warning)) if uid else ReviewResponse(400, b"")

    def _answer_other(self, review: OtherReview | Unreadable) -> ReviewResponse:
        if isinstance(review, OtherReview):
            self._telemetry.reviewed(result=ReviewResult.SKIPPED, reason="NotPodCreation")
            _log.warning(
                "Review of something else than the creation of a pod; check the MutatingWebhookConfiguration: "
                "%(about)s",
                {"about": review.about},
            )
            return ReviewResponse(200, permission(review.uid))
        self._telemetry.reviewed(result=ReviewResult.UNREADABLE, reason=review.reason)
        _log.warning("Unreadable review: %(problem)s", {"problem": review.why})
        return ReviewResponse(200, permission(review.uid)) if review.uid else ReviewResponse(400, review.why.encode())

    def _answer_creation(self, creation: PodCreation, context: OwnerContext | OwnersUnknown) -> bytes:
        review, controller = creation.review, creation.controller
        answer = self._cached_or_new(creation, context)
        self._telemetry.reviewed(result=answer.result, reason=answer.reason)
        if answer.reason != _INJECTED:
            owner = f"of {controller.kind} {controller.name}" if controller else "without controller"
            fields = {"owner": owner, "namespace": review.namespace, "detail": answer.message}
            _log.log(answer.level, "A pod %(owner)s in %(namespace)s gets no run: %(detail)s", fields)
        return permission(review.uid, answer.patch, warning=answer.warning)

    def _cached_or_new(self, creation: PodCreation, context: OwnerContext | OwnersUnknown) -> CachedReview:
        """Return the decision for an equal pod from the cache, or decide and store it."""
        source, key = creation.source, creation.key
        if key is None or isinstance(context, OwnersUnknown) or not context.hits:
            return self._review(creation, context)
        cached = self._decisions.get(source, context, key)
        if cached is None:
            cached = self._review(creation, context)
            self._decisions.put(source, context, key, cached)
        return cached

    def _review(self, creation: PodCreation, context: OwnerContext | OwnersUnknown) -> CachedReview:
        decision, pod = self._decide(creation, context), creation.review.pod
        operations = encoded(patch(pod, decision)) if isinstance(pod, dict) else ""
        if isinstance(decision, Injection):
            return CachedReview(operations, ReviewResult.INJECTED, _INJECTED, decision.message, logging.DEBUG)
        result = ReviewResult.FAILED if decision.reason is InjectionReason.OWNERS_UNKNOWN else ReviewResult.SKIPPED
        warning = f"mldiagnostics: {decision.warning}" if decision.warning else ""
        return CachedReview(operations, result, decision.reason, decision.message, _level(decision), warning)

    def _decide(self, creation: PodCreation, context: OwnerContext | OwnersUnknown) -> Injection | NotInjected:
        review = creation.review
        if isinstance(context, OwnersUnknown):
            unknown = OwnersUnknown(f"the namespace {review.namespace} is not known: {context.message}")
            context = OwnerContext({"metadata": {}}, unknown, ())
        namespace = context.namespace["metadata"]
        labels = namespace.get("labels") or {}
        return decide(
            review.pod,
            pod_bytes=creation.size,
            namespace=review.namespace,
            namespace_labels=labels | {OPT_IN_LABEL: "true"} if creation.source is LabelSource.NAMESPACE else labels,
            namespace_annotations=namespace.get("annotations") or {},
            owners=context.owners,
            settings=self._settings_of(review.namespace),
            now=self._clock(),
        )

    def _settings_of(self, namespace: str) -> InjectionSettings:
        published = self._publication
        if published is None or not published.serves(namespace):
            return self._settings
        return replace(self._settings, control_plane_url=published.url, control_plane_ca=published.ca)


def _parsed_again(body: bytes) -> Review:
    """Parse the body of a review again."""
    review = read(body)
    if not isinstance(review, Review):
        raise TypeError("the body is not the creation of a pod")
    return review


def _level(decision: NotInjected) -> int:
    """Return WARNING for a fault or a mistake of the user, else INFO or DEBUG."""
    if decision.reason is MatchReason.KIND_NEEDS_OWN_LABEL:
        return logging.INFO
    return logging.WARNING if decision.requested or decision.reason is InjectionReason.OWNERS_UNKNOWN else logging.DEBUG
