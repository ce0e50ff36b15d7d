"""Attribution: the run of a sender's pod, by the walk up its owners."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING

from mldiagnostics_api.workloads.kinds import workload_of
from mldiagnostics_api.workloads.owners import ObjectReference, lone_run, run_of
from mldiagnostics_api.workloads.variables import InjectedIdentity
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, RequestRejected, path_to

from mldiagnostics_operator.control_plane.identity.lookups import Overloaded
from mldiagnostics_operator.control_plane.limits import MAX_TOKENS, REVIEW_CACHE_S
from mldiagnostics_operator.owners import Owners

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.workloads.kinds import Object
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.control_plane.identity.lookups import Lookups
    from mldiagnostics_operator.control_plane.identity.sender import Sender


class NotAttributed(Exception):
    """The pod belongs to no run, or does not exist any more."""


class Attribution:
    """Returns the run id of a pod, and remembers it for five minutes.

    Args:
        cluster: Client of the API server.
        lookups: Turns at look-ups.
        cluster_name: Name of the cluster, part of every run id.
        clock: Unix time.
    """

    def __init__(self, cluster: ApiClient, lookups: Lookups, cluster_name: str, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._owners = Owners(cluster)
        self._lookups = lookups
        self._cluster_name = cluster_name
        self._clock = clock
        self._runs: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """End of use and run id, by uid of the pod."""

    async def run_of(self, sender: Sender) -> str:
        """Return the id of the run that a pod belongs to.

        Raises:
            NotAttributed: The pod does not exist, or belongs to no workload that is a run.
            Overloaded: The API server does not answer, or too many wait.
        """
        known = self._runs.get(sender.pod_uid)
        if known and self._clock() < known[0]:
            return known[1]
        async with self._lookups.turn(sender.namespace, "owners"):
            try:
                pod = await self._cluster.get(
                    path_to("", "v1", "pods", namespace=sender.namespace, name=sender.pod), metadata_only=True
                )
                same = pod["metadata"]["uid"] == sender.pod_uid
                run_id = await self.run_of_pod(pod) if same else ""
            except (NotFound, RequestRejected) as error:
                raise NotAttributed(f"pod {sender.pod}: does not exist any more, or cannot be read: {error}") from error
            except ClusterError as error:
                raise Overloaded(f"pod {sender.pod}: cannot be read now: {error}") from error
        if not run_id:
            raise NotAttributed(f"pod {sender.pod}: is another one now, with another uid")
        self._runs[sender.pod_uid] = self._clock() + REVIEW_CACHE_S, run_id
        if len(self._runs) > MAX_TOKENS:
            self._runs.popitem(last=False)
        return run_id

    def forget_pod(self, uid: str) -> None:
        """Drop a pod that does not exist any more."""
        self._runs.pop(uid, None)

    def forget_all(self) -> None:
        """Drop all pods; the run of each is found again."""
        self._runs.clear()

    async def run_of_pod(self, pod: Object) -> str:
        """Return the run id of a pod from its metadata and owners.

        Raises:
            NotAttributed: The pod belongs to no workload that is a run.
            ClusterError: An owner could not be read.
        """
        metadata = pod["metadata"]
        controller = ObjectReference.to_controller(metadata, metadata["namespace"])
        if controller is None:
            created = datetime.fromisoformat(metadata["creationTimestamp"])
            labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
            run = lone_run(metadata["name"], labels, annotations, created, uid=metadata["uid"])
        else:
            chain = await self._owners.chain(controller)
            top = ObjectReference.to_controller(chain[-1]["metadata"], metadata["namespace"]) if chain else controller
            topmost = None if top is not None and top.can_belong_to_run else run_of(chain)
            if topmost is None:
                raise NotAttributed(
                    f"pod {metadata['name']}: its owner {controller.kind} {controller.name} is not a workload of a "
                    "supported kind, or was deleted"
                )
            run = topmost
        workload = workload_of(run.kind, run.workload["apiVersion"])
        if workload is None:
            raise NotAttributed(f"pod {metadata['name']}: {run.kind} is not a supported kind of workload")
        try:
            return InjectedIdentity.of(
                run, workload, cluster=self._cluster_name, namespace=metadata["namespace"]
            ).run_id
        except ValueError as error:
            raise NotAttributed(f"pod {metadata['name']}: has no run: {error}") from error
