"""Decide which waiting captures start now.

One capture per pod, bounded per namespace and in total, fair between namespaces.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class WaitReason(StrEnum):
    """Why a capture waits; shown to its owner."""

    POD_BUSY = "PodBusy"
    NAMESPACE_QUOTA = "NamespaceQuota"
    CLUSTER_QUOTA = "ClusterQuota"


@dataclass(frozen=True, slots=True)
class CaptureClaim:
    """A capture's place in the queue and the uids of the pods that it would profile.

    `arrival` orders the claims and is unique.
    """

    uid: str
    namespace: str
    arrival: int
    pods: frozenset[str]


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of the captures in flight; both are at least 1."""

    per_namespace: int
    total: int

    def message(self, reason: WaitReason, namespace: str) -> str:
        """Return why a capture of the namespace waits, for its owner."""
        match reason:
            case WaitReason.NAMESPACE_QUOTA:
                running = f"{self.per_namespace} of {self.per_namespace} captures of namespace {namespace}"
                return f"queued: {running} are running (policy.capturesPerNamespace)"
            case WaitReason.CLUSTER_QUOTA:
                running = f"{self.total} of {self.total} captures of all namespaces"
                return f"queued: {running} are running (policy.capturesTotal)"
            case WaitReason.POD_BUSY:
                return "queued: an earlier capture has one of the pods; this capture starts when that one has ended"


@dataclass(frozen=True, slots=True)
class AdmissionDecision:
    """The claims that start now, in order, and why each other claim waits, by uid."""

    start: tuple[CaptureClaim, ...]
    waits: Mapping[str, WaitReason]


def decide(
    waiting: Iterable[CaptureClaim], running: Collection[CaptureClaim], quota: Quota, turns: Mapping[str, int]
) -> AdmissionDecision:
    """Return which claims start now.

    A pod serves its claims in order of arrival, so that claims of few pods cannot overtake a claim of many pods for
    ever. Free places rotate between the namespaces: the next one is for the namespace whose last start is the longest
    ago, and in it for the earliest claim whose pods are free. `turns` has the number of the last start of each
    namespace; a namespace without a start comes first.
    """
    taken = set[str]().union(*(claim.pods for claim in running))
    ready: dict[str, list[CaptureClaim]] = {}
    waits: dict[str, WaitReason] = {}
    for claim in sorted(waiting, key=lambda claim: claim.arrival):
        if taken.isdisjoint(claim.pods):
            ready.setdefault(claim.namespace, []).append(claim)
        else:
            waits[claim.uid] = WaitReason.POD_BUSY
        taken |= claim.pods

    in_flight = Counter(claim.namespace for claim in running)
    last_turn = dict(turns)
    start: list[CaptureClaim] = []
    while len(running) + len(start) < quota.total:
        open_namespaces = [name for name, queue in ready.items() if queue and in_flight[name] < quota.per_namespace]
        if not open_namespaces:
            break
        name = min(open_namespaces, key=lambda name: (last_turn.get(name, -1), ready[name][0].arrival))
        start.append(ready[name].pop(0))
        in_flight[name] += 1
        last_turn[name] = max(last_turn.values(), default=-1) + 1

    for name, queue in ready.items():
        reason = WaitReason.NAMESPACE_QUOTA if in_flight[name] >= quota.per_namespace else WaitReason.CLUSTER_QUOTA
        waits.update((claim.uid, reason) for claim in queue)
    return AdmissionDecision(tuple(start), waits)
