"""The decision whether a workload is a run, with the owners that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.formats import parse_time
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.workloads.kinds import LONE_POD, workload_of
from mldiagnostics_api.workloads.matching import match
from mldiagnostics_api.workloads.owners import lone_run, missing_whole, run_of
from mldiagnostics_api.workloads.variables import InjectedIdentity

from mldiagnostics_operator.owners import Owners
from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_api.workloads.kinds import Object, WorkloadKind
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.runs.watches.workload_watches import WorkloadWatches

    Labels = Mapping[str, str]

_KNOWN_PARTS: Final = 16_384


@dataclass(frozen=True, slots=True)
class OptedIn:
    """A workload that is a run."""

    observed: ObservedWorkload
    identity: InjectedIdentity

    @property
    def reference(self) -> dict[str, str]:
        """The fields of `workloadRef`."""
        identity = self.identity
        kind = identity.workload.kind
        return {"apiVersion": identity.api_version, "kind": kind, "name": identity.name, "uid": self.observed.uid}


class WorkloadIdentities:
    """Decides which observed workloads are runs, as the webhook does for their pods.

    Args:
        cluster: Client of the API server.
        cluster_name: Name of the cluster, part of every run id.
        workloads: The watched namespaces and pods.
        has_ended: Returns whether the workload with a uid has had its run.
    """

    def __init__(
        self, cluster: ApiClient, cluster_name: str, workloads: WorkloadWatches, *, has_ended: Callable[[str], bool]
    ) -> None:
        self._owners = Owners(cluster)
        self._cluster_name = cluster_name
        self._workloads = workloads
        self._has_ended = has_ended
        self._parts: dict[str, str] = {}
        """Uids of workloads that belong to another one, and of controllers whose pods do, with the name of one pod."""

    async def decide(self, observed: ObservedWorkload) -> OptedIn | None:
        """Return the run of an observed workload; None if it is not a run.

        A labelled pod can opt in its workload, which is read then. Raises ClusterError.
        """
        controller = observed.controller
        if controller is None or not controller.can_belong_to_run:
            return self._decide(observed, {})
        is_pod = observed.kind is LONE_POD
        part = controller.uid if is_pod else observed.uid
        if self._is_decided(part, observed):
            return None
        chain = await self._owners.chain(controller)
        if missing_whole(controller, chain):
            return None
        top = _top(chain)
        if top is None:
            return None if is_pod else self._decide(observed, {})
        if self._is_decided(part, observed):
            return None  # by another worker meanwhile
        if len(self._parts) >= _KNOWN_PARTS:
            self._parts.clear()
        self._parts[part] = observed.name if is_pod else ""
        if not is_pod:
            return None  # its owner has the label itself, or a watch of the namespace delivers it
        if self._has_ended(top.uid):
            return None
        whole = await self.read(top.kind, top.namespace, top.name)
        return self._decide(whole, observed.labels) if whole and whole.uid == top.uid else None

    def _is_decided(self, part: str, observed: ObservedWorkload) -> bool:
        """Return whether an object needs no decision.

        One pod stands for all of its controller, also after a failure; the next one follows when it is gone.
        """
        decided = self._parts.get(part)
        if decided is None or observed.kind is not LONE_POD:
            return decided is not None
        return decided != observed.name and self._workloads.find(LONE_POD, observed.namespace, decided) is not None

    async def read(self, kind: WorkloadKind, namespace: str, name: str) -> ObservedWorkload | None:
        """Read a workload in a served version; None if it does not exist.

        Raises ClusterError.
        """
        return await self._owners.read(kind, namespace, name, lambda body: observe(kind, body))

    def _decide(self, observed: ObservedWorkload, pod_labels: Labels) -> OptedIn | None:
        is_pod = observed.kind is LONE_POD
        matched = match(
            observed.kind,
            labels=observed.labels,
            pod_labels=observed.labels
            if is_pod
            else {key: pod_labels[key] for key in pod_labels if key == OPT_IN_LABEL},
            namespace=observed.namespace,
            namespace_labels=self._workloads.namespace_labels(observed.namespace),
        )
        if not matched.opted_in or observed.state is None:
            return None
        metadata: Mapping[str, Any] = observed.metadata
        if is_pod:
            created = parse_time(metadata.get("creationTimestamp"))
            run = lone_run(observed.name, observed.labels, metadata["annotations"], created, uid=observed.uid)
        else:
            typed = {"apiVersion": observed.kind.api_version, "kind": observed.kind.kind, "metadata": metadata}
            itself = run_of((typed,))
            if itself is None:
                return None
            run = itself
        identity = InjectedIdentity.of(run, observed.kind, cluster=self._cluster_name, namespace=observed.namespace)
        return OptedIn(observed, identity)


def _top(chain: tuple[Object, ...]) -> ObservedWorkload | None:
    """Return the topmost owner; None if it cannot be a run."""
    run = run_of(chain)
    kind = workload_of(run.kind, run.workload["apiVersion"]) if run else None
    return observe(kind, run.workload) if run and kind else None
