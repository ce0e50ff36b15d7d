"""Pods and workloads by the names that kubectl takes, and their owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.injection import OwnersUnknown
from mldiagnostics_api.workloads.kinds import LONE_POD, WORKLOADS, WorkloadKind, workload_named, workload_of
from mldiagnostics_api.workloads.owners import ObjectReference, missing_owners, owner_chain
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.client.cluster import Cluster

    Object = dict[str, Any]


_POD_ALIASES = ("po", "pod", "pods")


@dataclass(frozen=True, slots=True)
class ObjectName:
    """A pod or a workload as a user names it."""

    kind: WorkloadKind
    name: str

    @classmethod
    def parse(cls, text: str) -> ObjectName:
        """Parse a name: of a pod, or KIND/NAME.

        >>> ObjectName.parse("jobset/trainer").kind.kind, ObjectName.parse("trainer-0").is_pod
        ('JobSet', True)

        Raises:
            ConfigurationError: The kind is not one that can have runs.
        """
        before, slash, name = text.partition("/")
        kind = before.lower()
        if not slash or kind in _POD_ALIASES:
            return cls(LONE_POD, name if slash else text)
        if workload := workload_named(kind):
            return cls(workload, name)
        known = ", ".join(workload.kind.lower() for workload in WORKLOADS)
        raise ConfigurationError(f"{text}: '{before}' is not a kind of workload; name a pod, or use one of {known}")

    @property
    def is_pod(self) -> bool:
        """Whether it names a pod."""
        return self.kind is LONE_POD

    @property
    def text(self) -> str:
        """The name in messages, KIND/NAME."""
        return f"{self.kind.kind.lower()}/{self.name}"


async def read_object(cluster: Cluster, name: ObjectName) -> Object:
    """Return a pod or a workload of the user's namespace, with kind and version.

    Raises:
        ConfigurationError: There is no such object.
        ClusterError: It cannot be read.
    """
    for version in name.kind.versions:
        path = path_to(name.kind.group, version, name.kind.plural, namespace=cluster.namespace, name=name.name)
        try:
            found = await cluster.client.get(path)
        except NotFound:
            continue
        group = f"{name.kind.group}/{version}" if name.kind.group else version
        return {**found, "apiVersion": group, "kind": name.kind.kind}
    raise ConfigurationError(
        f"{name.text}: not found in namespace '{cluster.namespace}' of {cluster.description}; "
        f"check the name, the namespace and the context"
    )


async def owners_of(client: ApiClient, controller: ObjectReference | None) -> tuple[Any, ...] | OwnersUnknown:
    """Return the owners of a pod or workload, nearest first, as the webhook does."""
    known: dict[ObjectReference, Any] = {}
    try:
        while missing := missing_owners([controller], known, pods=False):
            for reference in missing:
                known[reference] = await _owner(client, reference)
    except ClusterError as error:
        return OwnersUnknown(str(error))
    return owner_chain(controller, known.get, pods=False)


async def _owner(client: ApiClient, reference: ObjectReference) -> Object | None:
    workload = workload_of(reference.kind, reference.api_version)
    if workload is None:
        return None
    for version in workload.versions:
        path = path_to(workload.group, version, workload.plural, namespace=reference.namespace, name=reference.name)
        try:
            return await client.get(path, metadata_only=True)
        except NotFound:
            continue
    return None
