"""A namespace of a real API server in which tests act as the controllers: any kind of object, and running pods."""

from __future__ import annotations

import asyncio
import copy
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import yaml
from cluster.addons import crd_paths
from mldiagnostics_api.names import PROFILER_PORTS_ANNOTATION
from mldiagnostics_kube.client.apiserver import Conflict, NotFound, path_to
from support.cluster import builders
from support.cluster.definitions import DEFINITIONS, kueue_workload, permissive

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.operating import Namespace

Object = dict[str, Any]

SERVED_WITHIN_S: Final = 30
_ADDONS: Final = {"JobSet": "jobset", "LeaderWorkerSet": "lws", "RayCluster": "kuberay", "RayJob": "kuberay"}
_WITHOUT_MODULE: Final = frozenset({"PyTorchJob", "TrainJob"})


@dataclass
class Stage:
    """A maker of objects, and of pods that all publish the same profiler ports."""

    ml: Namespace
    published: str | dict[str, int]
    """The value of the annotation, or the names and numbers of container ports."""
    sidecar: dict[str, int] = field(default_factory=dict)
    """Ports of the container `sidecar`; empty for pods without it."""
    ranks: list[Object] = field(default_factory=list)
    """The pods made so far, in the order of their ranks."""

    async def make(self, api_version: str, kind: str, name: str, **parts: Any) -> Object:
        """Make an object; `parts` are spec, status, labels and owner."""
        await _serve(self.ml.cluster, api_version, kind)
        body = builders.thing(name, kind=kind, api_version=api_version, namespace=self.ml.name, **parts)
        return await self.ml.put(_path(api_version, kind, self.ml.name), body)

    async def pod(self, name: str, *, annotations: dict[str, str] | None = None, **parts: Any) -> Object:
        """Make a pod that runs on its own node; it has the next rank."""
        marks = annotations or {}
        if isinstance(self.published, str):
            marks = marks | {PROFILER_PORTS_ANNOTATION: self.published}
        else:
            parts["ports"] = self.published
        node = f"node-{len(self.ranks)}"
        body = builders.pod(name, namespace=self.ml.name, ip=self.ml.ip, node=node, annotations=marks, **parts)
        if self.sidecar:
            other = builders.pod(container="sidecar", ports=self.sidecar)
            body["spec"]["containers"] += other["spec"]["containers"]
            body["status"]["containerStatuses"] += other["status"]["containerStatuses"]
        made = await self._put(body)
        self.ranks.append(made)
        return made

    async def impostors(self) -> None:
        """Make pods with all labels of the last one: one whose owner was replaced, and one without owner."""
        for name, gone in (("remnant-98", True), ("loose-99", False)):
            body = copy.deepcopy(self.ranks[-1])
            [owner] = body["metadata"]["ownerReferences"]
            body["metadata"] = {
                "name": name,
                "labels": body["metadata"]["labels"],
                "annotations": body["metadata"]["annotations"],
                "ownerReferences": [owner | {"uid": str(uuid4())}] if gone else [],
            }
            await self._put(body)

    async def _put(self, body: Object) -> Object:
        return await self.ml.put(path_to("", "v1", "pods", namespace=self.ml.name), body)


def _path(api_version: str, kind: str, namespace: str) -> str:
    group, _, version = api_version.rpartition("/")
    return path_to(group, version, f"{kind.lower()}s", namespace=namespace)


async def _serve(cluster: ApiClient, api_version: str, kind: str) -> None:
    """Install a custom kind unless it is served."""
    path = _path(api_version, kind, "default")
    with suppress(NotFound):
        await cluster.get(path)
        return
    definition = await asyncio.to_thread(_definition, api_version, kind)
    with suppress(Conflict):
        await cluster.create(DEFINITIONS, definition)
    async with asyncio.timeout(SERVED_WITHIN_S):
        while True:
            with suppress(NotFound):
                await cluster.get(path)
                return
            await asyncio.sleep(0.05)


def _definition(api_version: str, kind: str) -> Object:
    if kind == "Workload":
        return kueue_workload()
    if kind in _WITHOUT_MODULE:
        return permissive(
            api_version, kind
        )  # nothing here needs the modules of Kubeflow, whose controllers no test runs
    [path] = [path for path in crd_paths(_ADDONS[kind]) if path.stem.endswith(f"_{kind.lower()}s")]
    definition: Object = yaml.load(path.read_text(), yaml.CSafeLoader)
    return definition
